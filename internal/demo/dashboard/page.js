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
const left = 44, bottom = 18, line = 13, roof = 2 * line + 6; // the roof has two lines, for what was done

// labels lays out what was done in the lines of the roof: [text, all of it, marks, line, right of the first mark or left of the last]
// each. No label covers another, nor the way down from one above. What finds no room is said together with what is next to it.
function labels(marks, wide) {
	for (let near = 10; ; near *= 2) {
		const groups = [];
		for (const m of marks) groups.length && m.x - groups.at(-1).at(-1).x < near ? groups.at(-1).push(m) : groups.push([m]);
		const clash = (a, b) => a.row == b.row ? a.from < b.to && b.from < a.to : [[a, b], [b, a]].some(([low, high]) => low.row == 1 && high.row == 0 && high.marks.some(m => low.from < m.x && m.x < low.to));
		const place = put => {
			const marks = groups[put.length];
			if (!marks) return put;
			const all = marks.map(m => m.mark).join(", "), text = all.length <= 32 ? all : marks[0].mark.slice(0, 26) + (marks.length > 1 ? `, +${marks.length - 1}` : "…"), long = 6.4 * text.length + 8;
			for (const [row, right] of [[1, true], [0, true], [1, false], [0, false]]) {
				const from = right ? marks[0].x : marks.at(-1).x - long, next = { text, all, marks, row, right, from, to: from + long };
				const done = from >= 0 && next.to <= wide && !put.some(p => clash(p, next)) && place([...put, next]);
				if (done) return done;
			}
		};
		const done = groups.length > 8 ? undefined : place([]);
		if (done || groups.length < 2) return done ?? [];
	}
}

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
	const marks = all.filter(m => m.mark).map(m => ({ x: x(m.at), mark: m.mark }));
	for (const { text, all, marks: group, row, right } of labels(marks, wide)) {
		const from = right ? group[0] : group.at(-1), at = right ? from.x + 3 : from.x - 3; // others begin below the text
		out += group.map(m => `<path class="mark" d="M${m.x.toFixed(1)} ${m == from ? line * row + 3 : line * (row + 1) + 2}V${tall - bottom}"/>`).join("") + `<text class="said" x="${at.toFixed(1)}" y="${line * (row + 1) - 2}" text-anchor="${right ? "start" : "end"}">${safe(text)}<title>${safe(all)}</title></text>`;
	}
	svg.setAttribute("viewBox", `0 0 ${wide} ${tall}`);
	svg.innerHTML = out;
	const now = moments.at(-1);
	if (now) svg.setAttribute("aria-label", chart.lines.map(([k, name]) => `${name} ${chart.format == millis ? millis(now[k]) : count(now[k])}`).join(", "));
}
// drawEnds draws when each product ends: a dot each, from now to a tenth more than a TTL.
function drawEnds(svg, ends) {
	const wide = svg.clientWidth || 240, most = 1.1 * (settings.ttl || 1), x = ms => 6 + Math.min(1, ms / most) * (wide - 12);
	svg.setAttribute("viewBox", `0 0 ${wide} 30`);
	svg.setAttribute("aria-label", `products end in ${ends.map(ms => (ms / 1000).toFixed(1)).join(", ")} s`);
	svg.innerHTML = `<path class="grid" d="M6 9H${wide - 6}"/><text x="6" y="27">now</text><text x="${x(settings.ttl)}" y="27" text-anchor="middle">${shown.ttl(settings.ttl)}</text>` + ends.map(ms => `<circle cx="${x(ms).toFixed(1)}" cy="9" r="5"/>`).join("");
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
	const { redis, slow, ends, atDatabase, limit, queued } = moments.at(-1);
	$("[data-chart=crowd]").parentElement.hidden = !moments.some(m => m.limit);
	for (const svg of $$("[data-chart]")) draw(svg, charts[svg.dataset.chart]);
	drawEnds($(".ends"), ends ?? []);
	$("#loads").textContent = !limit ? "nobody asks" : limit < 0 ? `${atDatabase} queries at its database` : `${atDatabase} loads of ${limit} run, ${queued} wait`;
	for (const [button, state, verb, back] of [["kill", redis == "killed", "Kill Redis", "Start Redis again"], ["hang", redis == "hung", "Hang Redis", "Let Redis go on"], ["slow", slow > 0, "Slow database", `Slow for ${Math.ceil(slow)} s`]]) {
		const b = $(`[data-button=${button}]`);
		b.setAttribute("aria-pressed", state);
		b.firstElementChild.textContent = state ? back : verb;
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
	const keys = { e: "expire", f: "fill", k: "kill", h: "hang", d: "slow", p: "processes", r: "empty", s: "tour" };
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

// tell writes the table of what was done: for each strategy how it was before, during and after.
function tell(trials) {
	if (!trials.length) return;
	const percent = n => n.toFixed(1) + " %", row = (p, way) => `<tr>${way ? `<th scope="rowgroup" rowspan="3" class="words">${safe(way)}</th>` : ""}<th scope="row">${p.name} <small>${p.seconds} s</small></th>` + (p.pages
		? `<td>${percent(p.fresh)}<td>${percent(p.stale)}<td class="${p.waited > 5 ? "bad" : ""}">${percent(p.waited)}<td class="${p.errors ? "bad" : ""}">${percent(p.failed)}<td class="${p.queries > 40 * p.seconds ? "bad" : ""}">${p.queries}<td>${count(p.queries / p.seconds)}<td>${millis(p.p50)}<td class="${p.p99 > 100 ? "bad" : ""}">${millis(p.p99)}`
		: `<td class="words" colspan="8">nobody asked for a page`);
	const head = `<thead><tr><th scope="col">strategy<th scope="col" class="words">when<th scope="col">memory or Redis<th scope="col">stale<th scope="col">waited<th scope="col">failed<th scope="col">queries<th scope="col">a second<th scope="col">p50<th scope="col">p99</thead>`;
	const events = [...new Set(trials.map(t => t.event))];
	$("#trials").innerHTML = `<h2>Before, during and after</h2><p>What callers got of the pages that they asked for: fresh from memory or Redis, stale, after waiting for the database, or an error. It adds up to 100 %.</p>` + events.map(e => `<h2>${safe(e)}</h2><div class="wide"><table>${head}${trials.filter(t => t.event == e).map(t => `<tbody>${t.phases.map((p, i) => row(p, i ? "" : t.way)).join("")}</tbody>`).join("")}</table></div>`).join("");
	$("#trials").hidden = false;
}

legends();
$("#redis").textContent = about.redis;
if (recorded) {
	document.body.className = "report";
	$("#links").innerHTML = `Recorded ${safe(about.when)} by <code>mayfly demo --report</code>.`;
	recorded.forEach(take);
	tell(about.trials ?? []);
	show();
} else live();
