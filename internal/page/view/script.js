// Follows the request of the page: by server-sent events, else by polls. When its state is another one, the page is read again.
(() => {
	'use strict';
	const body = document.body, path = body.dataset.page;
	// The messenger that the user changed to is in the query of the page alone.
	const choice = location.search;
	// The answer to a form is not to be loaded again: its digits would count once more.
	if (location.pathname !== path) history.replaceState(null, '', path);
	let state = body.dataset.state, progress = Number(body.dataset.progress), final = 'final' in body.dataset;
	// heard is the progress that a replica reported. One that knows less, for a moment, sets nothing back.
	let heard = progress, reading = null;
	let stream = null, silent = 0, broken = 0, missing = 0;
	// round changes when the page comes back: what began before it ends.
	let round = 0, wake = () => {};
	const asking = new Set();
	const pause = (ms) => new Promise((done) => {
		wake = done;
		setTimeout(done, ms);
	});
	// A call that takes longer than limit ends: the network of a phone may have gone without a word.
	const ask = async (address, limit) => {
		const control = new AbortController(), timer = setTimeout(() => control.abort(), limit);
		asking.add(control);
		try {
			const response = await fetch(address, {cache: 'no-store', credentials: 'same-origin', signal: control.signal});
			missing = response.status === 404 ? missing + 1 : 0;
			// There is no such page any more. One replica that does not know it yet is not enough.
			if (missing > 2) location.reload();
			if (!response.ok) throw new Error(response.status);
			return await response.text();
		} finally {
			clearTimeout(timer);
			asking.delete(control);
		}
	};
	// Shows what a replica knows: its main part takes the place of the one that is shown.
	const show = async () => {
		const next = new DOMParser().parseFromString(await ask(path + choice, 10000), 'text/html');
		const known = Number(next.body.dataset.progress);
		if (known < progress) return;
		const same = next.body.dataset.state === state;
		progress = known;
		state = next.body.dataset.state;
		final = 'final' in next.body.dataset;
		body.dataset.state = state;
		document.title = next.title;
		if (same) return;
		const held = document.activeElement && document.activeElement.id, typed = document.getElementById('digits')?.value;
		document.getElementById('main').replaceWith(document.adoptNode(next.getElementById('main')));
		const delay = /text-delay:(\d+s)/.exec(next.head.innerHTML);
		document.documentElement.style.setProperty('--text-delay', delay ? delay[1] : '0s');
		// What was typed stays, and who typed or tapped the button stays there; all other news is read from its title.
		const field = document.getElementById('digits'), typing = held === 'digits' && field;
		if (field && typed) field.value = typed;
		const focused = typing || (state === 'opened' ? held && document.getElementById(held) : document.getElementById('title'));
		if (focused) focused.focus({preventScroll: true});
		document.getElementById('news').textContent = document.title;
		if (final) stop();
		leave();
	};
	const read = async () => {
		let mine = round;
		for (let tries = 1; tries <= 5 && !final; tries++) {
			try {
				await show();
				if (progress >= heard) return;
			} catch {}
			if (mine !== round) {
				mine = round;
				tries = 0;
			} else if (tries < 5) await pause(1000 * tries);
		}
	};
	const change = (seen, known) => {
		if (final || known < heard || known === heard && seen === state) return;
		heard = known;
		if (!reading) reading = read().finally(() => { reading = null; });
	};
	// Goes back to the client's page, after the time that it takes to read the title. In a frame its user does.
	const leave = () => {
		const back = document.getElementById('return');
		if (state === 'verified' && back && window.top === window) setTimeout(() => location.replace(back.href), 2500);
	};
	const stop = () => {
		clearTimeout(silent);
		if (stream) stream.close();
		stream = null;
	};
	const follow = () => {
		if (final || stream) return;
		if (!window.EventSource || broken > 2) {
			poll(round);
			return;
		}
		let began = Date.now();
		stream = new EventSource(path + '/events' + choice);
		const fail = () => {
			stop();
			const mine = round;
			setTimeout(() => { if (mine === round) follow(); }, 1000);
		};
		// The server sends the state at once. Where nothing comes, a proxy keeps it back.
		silent = setTimeout(() => {
			broken = 3;
			fail();
		}, 8000);
		stream.addEventListener('state', (event) => {
			clearTimeout(silent);
			change(event.data, Number(event.lastEventId));
		});
		stream.onerror = () => {
			broken = Date.now() - began > 10000 ? 0 : broken + 1;
			began = Date.now();
			// The browser resumes a stream that broke by itself, but none that was refused.
			if (broken > 2 || stream.readyState === EventSource.CLOSED) fail();
		};
	};
	const poll = async (mine) => {
		for (let n = 0; n < 15 && mine === round && !final && !document.hidden; n++) {
			const asked = Date.now();
			try {
				const seen = JSON.parse(await ask(path + '/state?since=' + encodeURIComponent(state) + choice.replace('?', '&'), 35000));
				change(seen.state, seen.progress);
				await reading;
			} catch {}
			// The server answers at once where it can hold no more polls.
			await pause(Math.max(500, 4000 - (Date.now() - asked)));
		}
		if (mine !== round) return;
		broken = 0;
		if (!document.hidden) follow();
	};
	// A phone stops the page while the messenger is open, with its connection. What came meanwhile is asked for at once.
	const resume = () => {
		if (document.hidden || final) return;
		round++;
		asking.forEach((control) => control.abort());
		wake();
		stop();
		broken = 0;
		follow();
	};
	document.addEventListener('visibilitychange', resume);
	addEventListener('pageshow', (event) => { if (event.persisted) resume(); });
	addEventListener('online', resume);
	document.addEventListener('click', (event) => {
		const tapped = event.target.closest && event.target.closest('#open');
		if (tapped) fetch(path + '/opened' + choice, {method: 'POST', keepalive: true, credentials: 'same-origin'}).then(() => change('opened', heard), () => {});
	});
	// Counts the minutes of the part that is shown. Nothing of it is read out.
	const countDown = () => {
		const left = document.getElementById('left');
		if (!left) return;
		left.dataset.end = left.dataset.end || Date.now() + 1000 * left.dataset.left;
		const minutes = Math.floor((left.dataset.end - Date.now()) / 60000);
		const text = minutes > 0 ? left.dataset.text.replace('{minutes}', minutes) : left.dataset.last;
		if (left.textContent !== text) left.textContent = text;
		left.hidden = false;
	};
	setInterval(countDown, 1000);
	countDown();
	follow();
	leave();
})();
