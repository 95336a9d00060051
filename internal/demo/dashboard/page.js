"use strict";
const $ = s => document.querySelector(s), $$ = s => [...document.querySelectorAll(s)];
const recorded = about.recorded; // moments; a report shows them, the live page asks for its own
const shownFor = 60_000; // ms of a live chart
let moments = [], settings = {};

// Numbers, for people.
const count = n => n >= 100 ? Math.round(n).toLocaleString("en") : n >= 10 ? n.toFixed(0) : String(+n.toFixed(1));
const millis = n => !n ? "–" : n >= 1000 ? (n / 1000).toFixed(1) + " s" : n >= 10 ? n.toFixed(0) + " ms" : n >= 1 ? n.toFixed(1) + " ms" : Math.round(n * 1000) + " µs";
const shown = { ttl: n => n / 1000 + " s" };

// A mean of the last so many moments; a maximum; the growth per second of what only grows.
const last = n => moments.slice(-n);
const mean = (of, n = 4) => last(n).reduce((sum, m) => sum + of(m), 0) / Math.max(1, last(n).length);
const most = (of, n = 8) => Math.max(0, ...last(n).map(of));
const growth = (of, n) => { const l = last(n + 1); return l.length < 2 ? 0 : (of(l.at(-1)) - of(l[0])) / ((l.at(-1).at - l[0].at) / 1000) };

// All that pages were asked for: what came of each is one of five things.
const got = m => m.fromMemory + m.fromRedis + m.stale + m.waited + m.failed;

const figures = {
	lease: () => count(most(m => m.worst)),
	early: () => count(mean(m => m.waited, 20)),
	local: () => count(mean(m => m.fromRedis)),
	jitter: () => mean(m => m.together).toFixed(0),
	pages: () => count(mean(m => m.rendered)),
	sliding: () => count(growth(m => m.lost, 40)),
	fields: () => count(moments.at(-1)?.addresses ?? 0),
	visits: () => count(moments.at(-1)?.endless ?? 0),
	admission: () => { const all = mean(m => m.answered + m.givenUp); return all ? (100 * mean(m => m.answered) / all).toFixed(0) : "–" },
};

// Charts: what is drawn, from what. A stack is drawn as shares.
const charts = {
	queries: { lines: [["queries", "asked", "bad"]], format: count, floor: 20 },
	tiers: { stack: true, lines: [["fromMemory", "memory", "good"], ["fromRedis", "Redis", "redis"], ["stale", "stale", "page"], ["waited", "waited for the database", "bad"], ["failed", "failed", "ink"]], format: n => n + " %" },
	latency: { log: true, lines: [["p99", "p99", "bad"], ["p50", "median", "good"]], format: millis },
	keys: { lines: [["keys", "keys", "redis"], ["endless", "without an end", "bad"], ["dead", "% dead", "page"]], format: count, floor: 20 },
	crowd: { lines: [["answered", "answered a second", "good"], ["givenUp", "given up", "bad"], ["atDatabase", "queries at its database", "redis"], ["queued", "loads that wait", "page"]], format: count, floor: 20 },
};
const left = 44, bottom = 18, roof = 16;

function draw(svg, chart) {
	const wide = svg.clientWidth || 480, tall = svg.clientHeight || 170;
	const to = moments.at(-1)?.at ?? 1, from = recorded ? moments[0]?.at ?? 0 : to - shownFor;
	const x = at => left + (at - from) / (to - from) * (wide - left);
	const all = moments.filter(m => m.at >= from);
	let top = Math.max(chart.floor ?? 1, ...chart.lines.flatMap(([k]) => all.map(m => m[k])));
	const step = 10 ** Math.floor(Math.log10(top)), nice = [1, 2, 2.5, 5, 10].map(f => f * step).find(v => v >= top);
	if (!chart.log && !chart.stack) top = nice;
	const share = chart.log ? v => Math.log10(Math.max(v, 0.001) / 0.001) / 7.2 : v => v / (chart.stack ? 1 : top);
	const y = v => tall - bottom - Math.min(1, share(v)) * (tall - bottom - roof);
	const levels = chart.log ? [0.01, 1, 100, 10000] : chart.stack ? [0, .5, 1] : [0, top / 2, top];
	let out = levels.map(v => `<path class="grid" d="M${left} ${y(v)}H${wide}"/><text x="${left - 6}" y="${y(v) + 4}" text-anchor="end">${chart.format(chart.stack ? v * 100 : v)}</text>`).join("");
	for (let ago = 0; ago <= to - from; ago += recorded ? Math.max(5000, Math.ceil((to - from) / 6 / 5000) * 5000) : 15_000) {
		const at = recorded ? from + ago : to - ago;
		out += `<text x="${x(at)}" y="${tall - 3}" text-anchor="${recorded ? ago ? "middle" : "start" : ago ? "middle" : "end"}">${recorded ? ago / 1000 + " s" : ago ? "-" + ago / 1000 + " s" : "now"}</text>`;
	}
	if (chart.stack) {
		let busy = null; // where nobody asked, it is as it was before
		const sums = m => chart.lines.reduce((s, [k]) => s + m[k], 0);
		const base = all.map(() => 0), asked = all.map(m => busy = sums(m) ? m : busy ?? m), sum = asked.map(sums);
		for (const [key, , color] of chart.lines) {
			const lower = all.map((m, i) => `${x(m.at).toFixed(1)} ${y(base[i]).toFixed(1)}`);
			asked.forEach((m, i) => base[i] += sum[i] ? m[key] / sum[i] : 0);
			const upper = all.map((m, i) => `${x(m.at).toFixed(1)} ${y(base[i]).toFixed(1)}`);
			if (all.length > 1) out += `<path fill="var(--${color})" fill-opacity=".85" d="M${upper.join("L")}L${lower.reverse().join("L")}Z"/>`;
		}
	} else {
		for (const [key, , color] of chart.lines) {
			const points = all.map(m => `${x(m.at).toFixed(1)} ${y(m[key]).toFixed(1)}`).join("L");
			if (all.length < 2) continue;
			if (chart.lines.length == 1) out += `<path fill="var(--${color})" fill-opacity=".15" d="M${x(all[0].at).toFixed(1)} ${y(0)}L${points}L${x(all.at(-1).at).toFixed(1)} ${y(0)}Z"/>`;
			out += `<path fill="none" stroke="var(--${color})" stroke-width="1.8" stroke-linejoin="round" d="M${points}"/>`;
		}
	}
	const said = []; // where there is text already: line, from, to
	for (const m of all.filter(m => m.mark)) {
		const at = x(m.at), text = m.mark.length > 24 ? m.mark.slice(0, 23) + "…" : m.mark, long = 6.6 * text.length + 6;
		out += `<path class="mark" d="M${at} ${roof - 4}V${tall - bottom}"/>`;
		const room = [[0, at], [0, at - long], [1, at], [1, at - long], [2, at], [2, at - long]].find(([line, from]) => from >= left && from + long <= wide && !said.some(([l, a, b]) => l == line && from < b && a < from + long));
		if (!room) continue;
		const [line, from] = room;
		said.push([line, from, from + long]);
		out += `<text class="said" x="${from < at ? at - 3 : at + 3}" y="${roof - 5 + 13 * line}" text-anchor="${from < at ? "end" : "start"}">${safe(text)}</text>`;
	}
	svg.setAttribute("viewBox", `0 0 ${wide} ${tall}`);
	svg.innerHTML = out;
	const now = moments.at(-1);
	if (now) svg.setAttribute("aria-label", chart.lines.map(([k, name]) => `${name} ${chart.format == millis ? millis(now[k]) : count(now[k])}`).join(", "));
}
const safe = s => s.replace(/[&<>"]/g, c => `&#${c.charCodeAt()};`);

function legends() {
	for (const svg of $$("[data-chart]")) svg.parentElement.querySelector(".legend").innerHTML = charts[svg.dataset.chart].lines.map(([, name, color]) => `<span><i style="background:var(--${color})"></i>${name}</span>`).join(" ");
}

function show() {
	if (!moments.length) return;
	const queries = mean(m => m.queries, 8), p99 = most(m => m.p99, 2), cached = mean(m => m.fromMemory + m.fromRedis), all = mean(got);
	const put = (id, text, bad) => { const o = $(id); o.textContent = text; o.className = bad ? "bad" : "good" };
	put("#queries", count(queries), queries > 40);
	put("#p99", millis(p99), p99 > 100);
	put("#ratio", all ? (100 * cached / all).toFixed(1) + " %" : "–", cached < .95 * all);
	for (const o of $$("[data-figure]")) o.textContent = figures[o.dataset.figure]();
	for (const svg of $$("[data-chart]")) draw(svg, charts[svg.dataset.chart]);
	const { redis, atDatabase, limit, queued } = moments.at(-1);
	$("#loads").textContent = !limit ? "nobody asks" : limit < 0 ? `${atDatabase} queries at its database` : `${atDatabase} loads of ${limit} run, ${queued} wait`;
	for (const [button, state, verb, back] of [["kill", "killed", "Kill Redis", "Start Redis again"], ["hang", "hung", "Hang Redis", "Let Redis go on"]]) {
		const b = $(`[data-button=${button}]`);
		b.setAttribute("aria-pressed", redis == state);
		b.firstElementChild.textContent = redis == state ? back : verb;
	}
}

function set(to) {
	settings = to;
	for (const o of $$("[data-setting]")) o.textContent = (shown[o.dataset.setting] ?? String)(to[o.dataset.setting]);
	for (const i of $$("[data-slider]")) if (document.activeElement != i || recorded) i.value = to[i.dataset.slider];
	for (const i of $$("[data-switch]")) {
		const name = i.dataset.switch;
		i.checked = to[name] == 1;
		i.disabled = !!recorded || name != "mayfly" && (!to.mayfly || name == "local" && !to.lease || name == "fields" && !about.fields);
	}
	$("#way").textContent = to.mayfly ? "is on" + (recorded ? "" : ": press the red button again") : "is off: GET, else query and SET EX, by hand";
	$("[data-button=processes]").disabled = to.processes + 2 > about.processes;
}

function take(m) {
	if (m.settings) set(m.settings);
	if (m.mark) $("#says").textContent = m.mark;
	moments.push(m);
	if (moments.length > 260 && !recorded) moments.shift();
}

// What the page asks the shop to do.
async function ask(path, what) {
	try {
		const answer = await fetch(path, { method: "POST", body: new URLSearchParams(what) });
		if (!answer.ok) $("#says").textContent = await answer.text();
	} catch {
		$("#says").textContent = "The demo does not answer: has it ended?";
	}
}

function live() {
	for (const i of $$("[data-switch]")) i.addEventListener("change", () => ask("/set", { name: i.dataset.switch, value: i.checked ? 1 : 0 }));
	for (const i of $$("[data-slider]")) {
		i.addEventListener("input", () => i.parentElement.querySelector("output").textContent = (shown[i.dataset.slider] ?? String)(i.value));
		i.addEventListener("change", () => ask("/set", { name: i.dataset.slider, value: i.value }));
	}
	for (const b of $$("[data-button]")) b.addEventListener("click", () => b.dataset.button == "tour" ? ask("/tour", {}) : ask("/press", { button: b.dataset.button }));
	const keys = { e: "expire", k: "kill", h: "hang", p: "processes", r: "empty", s: "tour" };
	addEventListener("keydown", e => {
		if (e.ctrlKey || e.metaKey || e.altKey || e.repeat) return;
		if (e.key == "m") $("[data-switch=mayfly]").click();
		if (keys[e.key]) $(`[data-button=${keys[e.key]}]`).click();
	});
	const stream = new EventSource("/events");
	stream.addEventListener("history", e => {
		moments = [];
		JSON.parse(e.data).forEach(take);
		$("#says").textContent = "The charts move four times a second. Press the red button, then switch mayfly on and press it again.";
		show();
	});
	stream.addEventListener("moment", e => { take(JSON.parse(e.data)); show() });
	stream.addEventListener("end", e => { stream.close(); $("#says").textContent = e.data });
	stream.onerror = () => $("#says").textContent = "The demo does not answer: has it ended?";
}

legends();
$("#redis").textContent = about.redis;
if (recorded) {
	document.body.className = "report";
	$("#links").innerHTML = `Recorded ${safe(about.when)} by <code>mayfly demo --report</code>.`;
	recorded.forEach(take);
	$("[data-chart=crowd]").parentElement.hidden = !recorded.some(m => m.limit);
	show();
} else live();
