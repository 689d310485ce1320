// The page shows what the simulator's HTTP API returns, and does nothing that docs/simulator.md does not describe.

const $ = (id) => document.getElementById(id);

const state = { turn: 0, users: [], chats: [], accounts: {}, requests: [], user: null, chat: null, draft: null, toText: false, seen: {} };

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

// redraw makes a list show items, and replaces only the elements whose item has changed: a button that is replaced while it is
// pressed is not clicked, and a screen reader announces what is replaced. The focus moves to the replacement.
function redraw(id, items, keyOf, build) {
  const list = $(id);
  const keys = new Set(items.map((item) => String(keyOf(item))));
  for (const element of [...list.children]) if (!keys.has(element.key)) element.remove();
  const before = new Map([...list.children].map((element) => [element.key, element]));
  items.forEach((item, index) => {
    const key = String(keyOf(item));
    const shown = JSON.stringify(item);
    let element = before.get(key);
    if (element?.shown !== shown) {
      const old = element;
      element = Object.assign(build(item), { key, shown });
      if (old) {
        const focused = old.contains(document.activeElement);
        old.replaceWith(element);
        if (focused) (element.matches('button') ? element : element.querySelector('button, summary') || $('number')).focus({ preventScroll: true });
      }
    }
    if (list.children[index] !== element) list.insertBefore(element, list.children[index] || null);
  });
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
    subject: 'page', // which a project may require
    method: new FormData($('init')).get('method'),
  });
  list(answer, $('number').value);
}

// list shows a verification, once, and follows it.
function list(answer, number) {
  if (state.requests.some((known) => known.requestId === answer.requestId)) return;
  state.requests.unshift({ ...answer, link: answer.waLink || answer.tgLink, status: 'PENDING', number });
  state.requests.length = Math.min(state.requests.length, 8);
  follow(state.requests[0]);
}

// follow asks for the status until it is final. It does not wait in a call: browsers have six connections for all of them.
async function follow(request) {
  for (; request.status === 'PENDING' && state.requests.includes(request); await new Promise((resolve) => setTimeout(resolve, 1000))) {
    try {
      const answer = await call('GET', `/backend/status?id=${encodeURIComponent(request.requestId)}`);
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
  redraw('requests', state.requests, (request) => request.requestId, (request) => make('li', { class: 'card' },
    make('div', { class: 'row' },
      make('span', { class: `pill ${request.status.toLowerCase()}` }, request.status),
      make('strong', {}, request.phoneNumber || request.number || '')),
    make('code', { class: 'id', title: 'requestId' }, request.requestId),
    request.status === 'PENDING'
      ? make('button', { type: 'button', class: 'open', onclick: doing('phone-error', () => open(request.link)) }, 'Open the link on the phone')
      : null,
    request.status === 'PENDING' && request.pageURL
      ? make('a', { class: 'page', href: request.pageURL, target: '_blank', rel: 'noopener' }, 'Open the page of the user')
      : null,
    request.status === 'VERIFIED'
      ? make('p', { class: 'hint' }, `by ${request.actualPhoneNumber}${request.assurance ? `, assurance: ${request.assurance}` : ''}`)
      : null,
    request.error ? make('p', { class: 'error' }, request.error) : null));
}

// ---- the phone

async function open(link) {
  const opened = await call('POST', userPath('open'), { link });
  state.chat = opened.chat;
  state.draft = null;
  state.toText = true;
}

function choosePerson(id) {
  Object.assign(state, { user: id, chat: null, draft: null });
  showPeople();
  return refresh();
}

// tabKeys moves among the tabs as the ARIA Authoring Practices have it: the arrow keys go round, Home and End to the ends.
function tabKeys(pressed) {
  const tabs = [...$('people').children];
  const at = tabs.indexOf(document.activeElement);
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[pressed.key];
  if (at < 0 || to === undefined || pressed.altKey || pressed.ctrlKey || pressed.metaKey) return;
  pressed.preventDefault();
  const tab = tabs.at(to % tabs.length);
  tab.focus();
  tab.click();
}

function showPeople() {
  redraw('people', state.users.map((u) => ({ ...u, selected: u.id === state.user })), (u) => u.id, (u) => make('button', {
    type: 'button', role: 'tab', id: `tab-${u.id}`, 'aria-controls': 'phone', 'aria-selected': String(u.selected),
    tabindex: u.selected ? 0 : -1, title: u.phone, onclick: () => choosePerson(u.id),
  }, u.name));
  const u = user();
  $('phone').setAttribute('aria-labelledby', u ? `tab-${u.id}` : 'phone-title');
  if (!u) return;
  const facts = [u.phone];
  if (u.hidesNumber) facts.push('hides the number on WhatsApp');
  else if (u.whatsAppID !== u.phone.slice(1)) facts.push(`WhatsApp says ${u.whatsAppID}`);
  $('identity').textContent = facts.join(' - ');
}

function showChats() {
  const items = state.chats.map((c) => ({ id: c.chat, platform: c.platform, title: c.title, current: c.chat === state.chat }));
  redraw('chats', items, (c) => c.id, (c) => make('button', {
    type: 'button', class: c.platform, 'aria-current': c.current ? 'true' : false,
    onclick: doing('phone-error', () => chooseChat(c.id)),
  }, `${platformName[c.platform]}: ${c.title}`));
  $('no-chat').hidden = state.chats.length > 0;
}

const marks = { sending: 'sending', delivered: 'delivered', waiting: 'refused, will be sent again', failed: 'refused, not sent again', undeliverable: 'no callback registered' };

// withLinks returns the parts of a text, with links that can be opened: an account's message may lead back to the page.
function withLinks(text) {
  return text.split(/(https?:\/\/\S+)/).map((part, i) => (i % 2 ? make('a', { href: part, target: '_blank', rel: 'noreferrer' }, part) : part));
}

function bubble(message) {
  const about = [clock(message.at)];
  if (message.state) about.push(marks[message.state] + (message.status && message.state !== 'delivered' ? ` (${message.status})` : ''));
  return make('div', { class: `bubble ${message.from}` },
    make('p', {}, ...(message.contact ? [`Contact: ${message.contact}`] : message.from === 'business' ? withLinks(message.text) : [message.text])),
    make('small', {}, about.join(' - ')));
}

function showChat() {
  const c = chat();
  const messages = c ? c.messages : [];
  const grew = state.seen.messages !== `${state.chat}:${messages.length}`;
  redraw('messages', messages, (message) => `${state.chat} ${message.id || message.at}`, bubble);
  if (grew) $('messages').scrollTop = $('messages').scrollHeight;
  state.seen.messages = `${state.chat}:${messages.length}`;
  $('messages').hidden = !c;
  $('compose').hidden = !c;
  $('share').hidden = !(c && c.asksForContact);
  $('share').textContent = c?.button || 'Share phone number';
  $('replies').hidden = !c?.replies;
  redraw('replies', c?.replies || [], (button) => `${state.chat} ${button.id || button.title}`, (button) => make('button', {
    type: 'button', class: 'share', onclick: doing('phone-error', () => tap(button)),
  }, button.title));
  const draft = c ? `${c.chat} ${c.draft}` : null;
  if (draft !== state.draft) { // a draft that is being edited stays
    state.draft = draft;
    $('text').value = c?.draft || '';
  }
  $('send').textContent = c?.platform === 'telegram' && c.draft && $('text').value === c.draft ? 'Start' : 'Send';
  grow();
}

async function tap(button) {
  await call('POST', userPath('tap'), { chat: state.chat, title: button.title });
  state.toText = true; // the buttons are about to go
}

// chooseChat opens a chat: its messages are read.
async function chooseChat(id) {
  Object.assign(state, { chat: id, draft: null });
  await call('POST', userPath('open'), { chat: id });
}

// grow makes the field for the message as high as its text, in the width that it has at the time.
function grow() {
  $('text').style.height = 'auto';
  $('text').style.height = `${Math.min($('text').scrollHeight + 2, 240)}px`; // and its border
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
      delivery.duplicate ? make('span', { class: 'pill' }, 'duplicate') : null,
      make('span', { class: 'status' }, `answered ${delivery.status}`)),
    make('div', { class: 'row' }, signature('x-webhook-signature', delivery.signature), signature('Standard Webhooks', delivery.standardSignature)),
    make('pre', {}, pretty(delivery.body)),
    make('details', {}, make('summary', {}, 'Headers'), make('pre', {}, headers)));
}

function showReceived(deliveries) {
  redraw('received', deliveries.slice(-20).reverse(), (delivery) => delivery.seq, event);
  const count = deliveries.length ? `Received events: ${deliveries.length}` : 'Events of verified numbers arrive here.';
  if ($('received-count').textContent !== count) $('received-count').textContent = count;
}

function showPosted(deliveries) {
  $('posted-count').textContent = deliveries.length ? `(${deliveries.length})` : '';
  redraw('posted', deliveries.slice(-30).reverse(), (d) => d.seq, (d) => {
    const about = [`${clock(d.at)} ${platformName[d.platform]}`, d.status || d.error];
    if (d.attempt > 1) about.push(`attempt ${d.attempt}`);
    return make('li', { class: d.status >= 200 && d.status < 300 ? '' : 'refused' }, about.join(' - '));
  });
}

// ---- all of it

// refresh draws what is so now. Where several run, the one that asked last draws: the answers of another may be older.
async function refresh() {
  const turn = ++state.turn;
  const [users, received, posted, begun] = await Promise.all([
    call('GET', '/sim/users'), call('GET', '/receiver/deliveries'), call('GET', '/sim/deliveries'), call('GET', '/sim/requests'),
  ]);
  if (turn !== state.turn) return;
  begun.requests.slice(-8).forEach((request) => list(request)); // those that the site began, too
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
  showReceived(received.deliveries);
  showPosted(posted.deliveries);
  if (state.toText && chat()) $('text').focus();
  state.toText = false;
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
$('share').addEventListener('click', doing('phone-error', async () => {
  await call('POST', userPath('share-contact'), { chat: state.chat });
  state.toText = true; // the button is about to go
}));
$('people').addEventListener('keydown', tabKeys);
window.addEventListener('resize', grow);
$('tap').addEventListener('submit', doing('phone-error', async () => {
  await open($('link').value);
  $('link').value = '';
}));
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
  Object.assign(state, { requests: [], user: null, chat: null, draft: null, seen: {} });
  $('number').value = '';
}));

// takeLink fills in the link that a user's page leads here with.
function takeLink() {
  if (location.hash.length < 2) return;
  $('link').value = location.hash.slice(1);
  history.replaceState(null, '', location.pathname);
  $('link').focus();
}
window.addEventListener('hashchange', takeLink);

const about = await call('GET', '/sim/about');
$('init').hidden = !about.backend;
$('no-backend').hidden = about.backend;
takeLink();
await refresh();
watch();
