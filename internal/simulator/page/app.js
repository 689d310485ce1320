// The page shows what the simulator's HTTP API tells, and does nothing that docs/simulator.md does not describe.

const $ = (id) => document.getElementById(id);

const state = { turn: 0, users: [], chats: [], accounts: {}, requests: [], user: null, chat: null, draft: null, attacks: [], seen: {}, drawn: {} };

// make returns an element with attributes and children. Texts are always set as text.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

async function call(method, path, body) {
  const response = await fetch(path, {
    method,
    headers: body === undefined ? {} : { 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  const answer = text ? JSON.parse(text) : {};
  if (!response.ok) throw new Error(answer.error ? answer.error.message : `HTTP ${response.status}`);
  return answer;
}

// redraw replaces what is in a list when what it shows has changed. A button that is replaced while it is pressed is not
// clicked.
function redraw(id, shown, children) {
  const now = JSON.stringify(shown);
  if (state.drawn[id] === now) return;
  state.drawn[id] = now;
  $(id).replaceChildren(...children());
}

function show(id, error) {
  $(id).textContent = error ? error.message : '';
  $(id).hidden = !error;
}

// doing runs what a person asked for, and shows what went wrong beside it.
const doing = (place, action) => async (submitted) => {
  submitted?.preventDefault();
  try {
    show(place);
    await action();
  } catch (error) {
    show(place, error);
  }
  await refresh();
};

const clock = (time) => new Date(time).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const platformName = { whatsapp: 'WhatsApp', telegram: 'Telegram' };
const user = () => state.users.find((u) => u.id === state.user);
const chat = () => state.chats.find((c) => c.chat === state.chat);
const userPath = (what) => `/sim/users/${encodeURIComponent(state.user)}/${what}`;

// ---- the client backend

async function start() {
  const answer = await call('POST', '/backend/init', {
    phoneNumber: $('number').value,
    method: new FormData($('init')).get('method'),
  });
  const link = answer.waLink || answer.tgLink;
  state.requests.unshift({ ...answer, link, status: 'PENDING', number: $('number').value });
  state.requests.length = Math.min(state.requests.length, 8);
  follow(state.requests[0]);
}

// follow asks for the status until it is final.
async function follow(request) {
  while (request.status === 'PENDING') {
    try {
      const answer = await call('GET', `/backend/status?id=${encodeURIComponent(request.requestId)}&wait=20s`);
      Object.assign(request, answer);
    } catch (error) {
      request.error = error.message;
      break;
    }
    showRequests();
  }
  showRequests();
}

function showRequests() {
  redraw('requests', state.requests, () => state.requests.map((request) => make('li', { class: 'card' },
    make('div', { class: 'row' },
      make('span', { class: `pill ${request.status.toLowerCase()}` }, request.status),
      make('strong', {}, request.phoneNumber || request.number)),
    make('code', { class: 'id', title: 'requestId' }, request.requestId),
    request.status === 'PENDING'
      ? make('button', { type: 'button', class: 'open', onclick: doing('phone-error', () => open(request.link)) }, 'Open the link on the phone')
      : null,
    request.status === 'VERIFIED'
      ? make('p', { class: 'hint' }, `by ${request.actualPhoneNumber}${request.assurance ? `, assurance: ${request.assurance}` : ''}`)
      : null,
    request.error ? make('p', { class: 'error' }, request.error) : null)));
}

// ---- the phone

async function open(link) {
  const opened = await call('POST', userPath('open'), { link });
  state.chat = opened.chat;
  state.draft = null;
  await refresh();
  $('text').focus();
}

function showPeople() {
  redraw('people', [state.users, state.user], () => state.users.map((u) => make('button', {
    type: 'button', role: 'tab', 'aria-selected': String(u.id === state.user), title: u.phone,
    onclick: () => { state.user = u.id; state.chat = null; state.draft = null; refresh(); },
  }, u.name)));
  const u = user();
  if (!u) return;
  const facts = [u.phone];
  if (u.hidesNumber) facts.push('hides the number on WhatsApp');
  else if (u.whatsAppID !== u.phone.slice(1)) facts.push(`WhatsApp says ${u.whatsAppID}`);
  $('identity').textContent = facts.join(' - ');
}

function showChats() {
  redraw('chats', [state.chats.map((c) => [c.chat, c.platform, c.title]), state.chat], () => state.chats.map((c) => make('button', {
    type: 'button', class: c.platform, 'aria-current': c.chat === state.chat ? 'true' : false,
    onclick: () => { state.chat = c.chat; state.draft = null; refresh(); },
  }, `${platformName[c.platform]}: ${c.title}`)));
}

const marks = { sending: 'sending', delivered: 'delivered', waiting: 'refused, comes again', failed: 'given up', undeliverable: 'no callback registered' };

function bubble(message) {
  const about = [clock(message.at)];
  if (message.attack) about.push(`attack: ${message.attack}`);
  else if (message.state) about.push(marks[message.state] + (message.status && message.state !== 'delivered' ? ` (${message.status})` : ''));
  return make('div', { class: `bubble ${message.from}${message.attack ? ' forged' : ''}` },
    make('p', {}, message.contact ? `Contact: ${message.contact}` : message.text),
    make('small', {}, about.join(' - ')));
}

function showChat() {
  const c = chat();
  const messages = c ? c.messages.map(bubble) : [make('p', { class: 'hint empty' }, 'No chat yet. Tap a link to open one.')];
  const grew = state.seen.messages !== `${state.chat}:${messages.length}`;
  $('messages').replaceChildren(...messages);
  if (grew) $('messages').scrollTop = $('messages').scrollHeight;
  state.seen.messages = `${state.chat}:${messages.length}`;
  $('compose').hidden = !c;
  $('share').hidden = !(c && c.asksForContact);
  $('share').textContent = c?.button || 'Share phone number';
  const draft = c ? `${c.chat} ${c.draft}` : null;
  if (draft !== state.draft) { // a draft that is being edited stays
    state.draft = draft;
    $('text').value = c?.draft || '';
    grow();
  }
  $('send').textContent = c?.platform === 'telegram' && c.draft && $('text').value === c.draft ? 'Start' : 'Send';
}

function grow() {
  $('text').style.height = 'auto';
  $('text').style.height = `${Math.min($('text').scrollHeight + 2, 160)}px`; // and its border
}

// ---- misbehaviour

function newestLink() {
  return state.requests[0]?.link || $('link').value;
}

function showAttacks() {
  const link = newestLink() || '';
  const platform = link.startsWith('https://t.me/') ? 'telegram' : 'whatsapp';
  if (state.seen.attacks !== platform && state.attacks.length) {
    state.seen.attacks = platform;
    $('attacks').replaceChildren(...state.attacks.filter((a) => a.platform === platform)
      .map((a) => make('option', { value: a.name }, a.name.replaceAll('-', ' '))));
  }
  const chosen = state.attacks.find((a) => a.platform === platform && a.name === $('attacks').value);
  $('attack-summary').textContent = chosen ? `${user()?.name || 'The user'} ${chosen.summary}.` : '';
}

async function attack() {
  const link = newestLink();
  if (!link) throw new Error('Start a verification first, or paste a link.');
  $('attack-result').textContent = '';
  const result = await call('POST', userPath(`attack/${$('attacks').value}`), { link, phone: state.requests[0]?.number });
  $('attack-result').textContent = result.deliveries
    .map((d) => (d.queued ? 'queued for getUpdates' : d.status ? `answered ${d.status}` : d.error)).join(', ');
  state.chat = null;
}

// ---- the receiver

const verdicts = { valid: 'valid', invalid: 'INVALID', missing: 'not signed', unknown: 'not checked' };

function signature(name, verdict) {
  return make('span', { class: `pill ${verdict}` }, `${name}: ${verdicts[verdict]}`);
}

function pretty(body) {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}

function event(delivery) {
  const headers = Object.entries(delivery.headers).sort().map(([name, value]) => `${name}: ${value}`).join('\n');
  return make('li', { class: 'card' },
    make('div', { class: 'row' },
      make('strong', {}, clock(delivery.at)),
      delivery.duplicate ? make('span', { class: 'pill' }, 'again') : null,
      make('span', { class: 'status' }, `answered ${delivery.status}`)),
    make('div', { class: 'row' }, signature('x-webhook-signature', delivery.signature), signature('Standard Webhooks', delivery.standardSignature)),
    make('pre', {}, pretty(delivery.body)),
    make('details', {}, make('summary', {}, 'Headers'), make('pre', {}, headers)));
}

function showReceived(deliveries) {
  const last = deliveries.at(-1)?.seq;
  if (state.seen.received === last && deliveries.length) return; // open details stay open
  state.seen.received = last;
  $('received').replaceChildren(...deliveries.slice(-20).reverse().map(event));
  $('nothing-received').hidden = deliveries.length > 0;
}

function showPosted(deliveries) {
  $('posted-count').textContent = deliveries.length ? `(${deliveries.length})` : '';
  $('posted').replaceChildren(...deliveries.slice(-30).reverse().map((d) => make('li', { class: d.status >= 200 && d.status < 300 ? '' : 'refused' },
    `${clock(d.at)} ${platformName[d.platform]} - ${d.status || d.error}${d.attack ? ` - ${d.attack}` : ''}${d.attempt > 1 ? ` - try ${d.attempt}` : ''}`)));
}

// ---- all of it

// refresh draws what is so now. Where several run, the one that asked last draws: the answers of another may be older.
async function refresh() {
  const turn = ++state.turn;
  const [users, received, posted] = await Promise.all([
    call('GET', '/sim/users'), call('GET', '/receiver/deliveries'), call('GET', '/sim/deliveries'),
  ]);
  if (turn !== state.turn) return;
  state.users = users.users;
  if (!user()) state.user = state.users[0]?.id || null;
  const chats = state.user ? (await call('GET', userPath('chats'))).chats.reverse() : [];
  if (turn !== state.turn) return;
  state.chats = chats;
  if (!chat()) state.chat = state.chats[0]?.chat || null;
  if (!$('number').value && user()) $('number').value = user().phone;
  showPeople();
  showChats();
  showChat();
  showRequests();
  showAttacks();
  showReceived(received.deliveries);
  showPosted(posted.deliveries);
}

async function watch() {
  for (let after = 0; ;) {
    try {
      const { events, next } = await call('GET', `/sim/events?after=${after}&wait=20s`);
      after = next;
      if (events.length) await refresh();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 1000)); // it is being restarted
      after = 0;
    }
  }
}

$('init').addEventListener('submit', doing('init-error', start));
$('compose').addEventListener('submit', doing('phone-error', () => call('POST', userPath('send'), { chat: state.chat, text: $('text').value })));
$('share').addEventListener('click', doing('phone-error', () => call('POST', userPath('share-contact'), { chat: state.chat })));
$('tap').addEventListener('submit', doing('phone-error', async () => {
  await open($('link').value);
  $('link').value = '';
}));
$('attack').addEventListener('submit', doing('attack-error', attack));
$('attacks').addEventListener('change', showAttacks);
$('text').addEventListener('input', () => { grow(); showChat(); });
$('text').addEventListener('keydown', (pressed) => {
  if (pressed.key === 'Enter' && !pressed.shiftKey) {
    pressed.preventDefault();
    $('compose').requestSubmit();
  }
});
$('reset').addEventListener('click', doing('phone-error', async () => {
  await call('POST', '/sim/reset');
  await call('DELETE', '/receiver/deliveries');
  Object.assign(state, { requests: [], user: null, chat: null, draft: null, seen: {}, drawn: {} });
  $('number').value = '';
}));

const about = await call('GET', '/sim/about');
$('init').hidden = !about.backend;
$('no-backend').hidden = about.backend;
state.attacks = (await call('GET', '/sim/attacks')).attacks;
await refresh();
watch();
