/* SPDX-License-Identifier: MIT */
/*
 * The page, out of the findings that the command put into it: what is asked first stands first.
 */
"use strict";

const KEYS_SHOWN = 12;

const section = (title, ...children) => make("section", {}, make("h2", {}, title), ...children);

const sum = (counts) => counts.reduce((all, count) => all + count, 0);

const kindsOf = (set) => ({
    once: set.accepted - set.delayed,
    delayed: set.delayed,
    rejected: set.rejected,
});

const requestsOf = (set) => set.accepted + set.rejected;

/* "at once 90 %, ..." as one bar, each part wide enough to be seen. */
const splitBar = (set) => {
    const kinds = kindsOf(set);
    const whole = requestsOf(set);
    const bar = make("div", {class: "split", role: "img", "aria-label": KINDS.map((kind) =>
        `${KIND_NAMES[kind]} ${share(kinds[kind], whole)}`).join(", ")});
    for (const kind of KINDS.filter((name) => kinds[name] > 0)) {
        const part = make("span", {class: kind});
        part.style.width = `max(4px, ${kinds[kind] * 100 / whole}%)`;
        part.style.flexShrink = kind === "once" ? "1" : "0";
        bar.append(part);
    }
    return bar;
};

const KIND_NOTES = {
    once: "passed as if there were no limit",
    delayed: "accepted after a wait",
    rejected: "turned away",
};

const totals = (set) => make("ul", {class: "totals"}, KINDS.map((kind) => make("li", {},
    make("span", {}, swatch(kind), KIND_NAMES[kind]),
    make("span", {class: "figure", "data-total": kind}, grouped(kindsOf(set)[kind])),
    make("span", {class: "share note"}, `${share(kindsOf(set)[kind], requestsOf(set))}, ${KIND_NOTES[kind]}`))));

const limitWords = (limit) => make("li", {},
    make("strong", {}, limit.name), limit.key ? [", for each ", make("code", {}, limit.key)] : [],
    `: ${limit.words}.`, make("br"), make("code", {class: "soft"}, limit.text));

const limits = (set) => make("ul", {class: "limits"}, set.limits.map(limitWords));

const kindLegend = () => make("ul", {class: "legend"},
    KINDS.map((kind) => make("li", {}, swatch(kind), KIND_NAMES[kind])));

const kindCounts = (kinds, index) => {
    const counts = kinds.map((of) => of[index]);
    return `${plural(sum(counts), "request")}: ${grouped(counts[0])} at once, ` +
        `${grouped(counts[1])} delayed, ${grouped(counts[2])} rejected`;
};

const overTime = (findings, set) => {
    const axis = findings.axis;
    const place = make("div", {class: "chart", role: "img", "aria-label": "Requests over time, stacked; the table below has the numbers"});
    const readout = make("p", {class: "readout soft", "aria-hidden": "true"});
    const all = set.when[0].map((_, index) => sum(set.when.map((of) => of[index])));
    const peak = all.indexOf(Math.max(...all));
    const say = (index) => `${binText(axis, index)}: ${kindCounts(set.when, index)}`;
    stackChart(place, axis, set.when, readout, say, `Busiest: ${say(peak)}`);
    return [make("figure", {}, kindLegend(), place, readout),
        folded("Requests over time as a table", () => table(
            `UTC, ${widthText(axis.width)} a row`, ["from", "at once", "delayed", "rejected"],
            all.map((_, index) => [timeText(axis.start + index * axis.width, axis.width),
                ...set.when.map((of) => grouped(of[index]))])))];
};

const delays = (set) => {
    const {axis, counts, mean, half, most, longest} = set.delays;
    if (set.delayed === 0)
        return [make("p", {class: "soft"}, "No accepted request had to wait.")];
    const words = `Half of the ${plural(set.delayed, "delayed request")} waited at most ` +
        `${waitText(half)}, 95 % at most ${waitText(most)}, the longest ${waitText(longest)}; ` +
        `${waitText(mean)} on average.`;
    const name = (index) => `${waitText(axis.start + index * axis.width)} to ` +
        `${waitText(axis.start + (index + 1) * axis.width)}`;
    const place = make("div", {class: "chart", role: "img", "aria-label": "How long delays were; the table below has the numbers"});
    const readout = make("p", {class: "readout soft", "aria-hidden": "true"});
    const say = (index) => `${name(index)}: ${plural(counts[index], "request")}, ${share(counts[index], set.delayed)} of those delayed`;
    lengthChart(place, axis, counts, "delayed", readout, say, `Most: ${say(counts.indexOf(Math.max(...counts)))}`);
    return [make("p", {}, words), make("figure", {}, place, readout),
        folded("Delays as a table", () => table(`Waits, ${widthText(axis.width)} a row`,
            ["wait", "requests", "share"],
            counts.map((count, index) => [name(index), grouped(count), share(count, set.delayed)])))];
};

/* What there may be more of, because a key was not counted from the beginning. */
const atLeast = (count, missed) => `${grouped(count)}${missed > 0 ? "+" : ""}`;

const keyText = (key) => make("span", {class: "key"}, key === "" ? "(empty)" : key);

const count = (name, text, more) => make("td", {class: `count ${more || ""}`, "data-name": name}, text);

const keyRow = (findings, hit, most) => {
    const axis = findings.keyAxis;
    const hits = hit.when[1].map((delayed, index) => delayed + hit.when[2][index]);
    const worst = hits.indexOf(Math.max(...hits));
    const label = `Most delayed or rejected: ${binText(axis, worst)}: ${grouped(hits[worst])}`;
    const place = make("div", {class: "spark", role: "img", "aria-label": label, title: label});
    sparkChart(place, axis, hit.when, most);
    return make("tr", {}, make("th", {scope: "row"}, keyText(hit.key)),
        count("rejected", atLeast(hit.rejected, hit.missed), "most"),
        count("delayed", atLeast(hit.delayed, hit.missed)),
        count("of", hit.requests === null ? "-" : atLeast(hit.requests, hit.requests_missed)),
        make("td", {class: "wide"}, place));
};

const keysTable = (findings, limit) => {
    const shown = limit.hardest.slice(0, KEYS_SHOWN);
    const most = Math.max(1, ...shown.flatMap((hit) =>
        hit.when[0].map((_, index) => sum(hit.when.map((of) => of[index])))));
    const axis = findings.keyAxis;
    return make("table", {class: "stacks"},
        make("caption", {}, `When: ${widthText(axis.width)} a bar, all on one scale, from ` +
            `${timeText(axis.start, axis.width)} to ` +
            `${timeText(axis.start + axis.bins * axis.width, axis.width)} UTC.` +
            (shown.some((hit) => hit.missed > 0 || hit.requests_missed > 0)
                ? " + or more: there were too many keys to count each from the beginning." : "")),
        make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "key"),
            ["rejected", "delayed", "of requests"].map((name) => make("th", {scope: "col", class: "count"}, name)),
            make("th", {scope: "col"}, "when"))),
        make("tbody", {}, shown.map((hit) => keyRow(findings, hit, most))));
};

const hardest = (findings, limit) => {
    const title = make("h3", {}, `Keys hit hardest: ${limit.name}`);
    if (limit.hardest.length === 0)
        return [title, make("p", {class: "soft"}, limit.requests === 0
            ? "No request names it." : `None of ${plural(limit.requests, "request")} was delayed or rejected.`)];
    const keys = `${limit.exact ? "" : "More than "}${plural(limit.keys, "key")}`;
    return [title, make("p", {}, `${keys} of ${plural(limit.requests, "request")} delayed or ` +
        `rejected: ${plural(limit.rejected, "rejection")}, ${plural(limit.delayed, "delay")}.`),
        keysTable(findings, limit)];
};

/* Everything about one set of limits. */
const setBody = (findings, set) => [
    totals(set), splitBar(set),
    make("h3", {}, "Requests over time"), ...overTime(findings, set),
    make("h3", {}, "How long delays were"), ...delays(set),
    ...set.limits.flatMap((limit) => hardest(findings, limit)),
];

const dashSample = (index) => {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    const line = document.createElementNS(space, "line");
    const draw = (element, attributes) => Object.entries(attributes)
        .forEach(([name, value]) => element.setAttribute(name, value));
    draw(svg, {width: 40, height: 14, "aria-hidden": "true"});
    draw(line, {x1: 1, x2: 39, y1: 7, y2: 7, stroke: `var(--set${index})`, "stroke-width": 2.5,
                "stroke-dasharray": DASHES[index % DASHES.length].join(" ")});
    svg.append(line);
    return svg;
};

const setsTable = (findings) => make("table", {class: "stacks"},
    make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "set"),
        KINDS.map((kind) => make("th", {scope: "col", class: "count"}, swatch(kind), KIND_NAMES[kind])),
        make("th", {scope: "col"}, "share"))),
    make("tbody", {}, findings.sets.map((set) => make("tr", {"data-set": set.name},
        make("th", {scope: "row"}, make("strong", {}, set.name)),
        KINDS.map((kind) => make("td", {class: "count", "data-total": kind, "data-name": KIND_NAMES[kind]},
            grouped(kindsOf(set)[kind]),
            make("span", {class: "soft part"}, share(kindsOf(set)[kind], requestsOf(set))))),
        make("td", {class: "wide narrower"}, splitBar(set))))));

const comparedChart = (findings) => {
    const axis = findings.axis;
    const lines = findings.sets.map((set) => set.when[1].map((delayed, index) => delayed + set.when[2][index]));
    const place = make("div", {class: "chart", role: "img", "aria-label": "Delayed or rejected over time by each set; the table below has the numbers"});
    const readout = make("p", {class: "readout soft", "aria-hidden": "true"});
    const say = (index) => `${binText(axis, index)}: ` +
        findings.sets.map((set, at) => `${set.name} ${grouped(lines[at][index])}`).join(", ");
    const all = lines[0].map((_, index) => Math.max(...lines.map((of) => of[index])));
    lineChart(place, axis, lines, readout, say, `Worst: ${say(all.indexOf(Math.max(...all)))}`);
    return [make("figure", {},
        make("ul", {class: "legend"}, findings.sets.map((set, index) => make("li", {}, dashSample(index), set.name))),
        place, readout),
        folded("Delayed or rejected over time as a table", () => table(
            `UTC, ${widthText(axis.width)} a row`, ["from", ...findings.sets.map((set) => set.name)],
            all.map((_, index) => [timeText(axis.start + index * axis.width, axis.width),
                ...lines.map((of) => grouped(of[index]))])))];
};

const comparedCell = (hit, most) => {
    if (hit === null)
        return make("td", {class: "count soft"}, "\u2013");
    const worst = hit.rejected + hit.delayed > 0 && hit.rejected + hit.delayed === most;
    return make("td", {class: `count ${worst ? "most" : ""}`}, atLeast(hit.rejected, hit.missed),
        hit.delayed > 0 ? make("span", {class: "soft"}, ` + ${grouped(hit.delayed)}`) : "");
};

const comparedKeys = (findings, name, keys) => {
    const shown = keys.slice(0, 2 * KEYS_SHOWN);
    const title = make("h3", {}, `Whom each set would have hurt: ${name}`);
    if (keys.length === 0)
        return [title, make("p", {class: "soft"}, "No set delays or rejects anybody.")];
    const hits = shown.flatMap((key) => key.sets);
    const caption = "Rejected + delayed requests of the keys hit hardest; the set that hits a key " +
        "most in bold." + (hits.includes(null) ? " \u2013: a set without this limit." : "") +
        (hits.some((hit) => hit && hit.missed > 0)
            ? " + or more: there were too many keys to count each from the beginning." : "");
    return [title, make("p", {class: "soft small"}, caption),
        make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": title.textContent},
        make("table", {class: "compared"},
            make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "key"),
                findings.sets.map((set) => make("th", {scope: "col", class: "count"}, set.name)),
                make("th", {scope: "col", class: "count"}, "of requests"))),
            make("tbody", {}, shown.map((key) => {
                const most = Math.max(...key.sets.map((hit) => hit ? hit.rejected + hit.delayed : 0));
                return make("tr", {}, make("th", {scope: "row"}, keyText(key.key)),
                    key.sets.map((hit) => comparedCell(hit, most)),
                    count("of", key.requests === null ? "-" : atLeast(key.requests, key.requests_missed)));
            }))))];
};

const comparison = (findings) => [
    section("The sets of limits", findings.sets.map((set) => [make("h3", {}, set.name), limits(set)])),
    section("What each set would have done", setsTable(findings),
        make("h3", {}, "Delayed or rejected over time"), comparedChart(findings)),
    section("Whom it would have hurt",
        findings.compared.map(({name, keys}) => comparedKeys(findings, name, keys))),
    section("Each set by itself", findings.sets.map((set, index) => make("details", index === 0 ? {class: "set", open: ""} : {class: "set"},
            make("summary", {}, set.name, make("span", {class: "soft"}, KINDS.slice(1).map((kind) =>
                `${share(kindsOf(set)[kind], requestsOf(set))} ${KIND_NAMES[kind]}`).join(", "))),
            setBody(findings, set)))),
];

const single = (findings) => {
    const set = findings.sets[0];
    return [totals(set), splitBar(set),
        section("The limits", limits(set)),
        section("Requests over time", overTime(findings, set)),
        section("How long delays were", delays(set)),
        section("Who was hit", set.limits.map((limit) => hardest(findings, limit)))];
};

/* What the reader should know of the traffic itself. */
const notes = (findings) => {
    const {lines, late, unreadable, others} = findings;
    const first = findings.first_unreadable;
    return section("How this was counted", make("ul", {},
        make("li", {}, `${plural(lines, "line")} of ${findings.files.join(", ")}, each request decided at the time at which it was made, in order of time.`),
        others > 0 ? make("li", {}, `${plural(others, "step")} asked for no permit (peek, refund, charge, reset).`) : null,
        late > 0 ? make("li", {}, `${plural(late, "line")} came too late to be put in order and ${late === 1 ? "was" : "were"} decided where ${late === 1 ? "it" : "they"} stood.`) : null,
        unreadable > 0 ? make("li", {}, `${plural(unreadable, "line")} can't be read; the first is line ${grouped(first.line)} of ${first.file}: ${first.reason}. `, make("span", {class: "key"}, first.text)) : null,
        findings.sets.some((set) => set.limits.length > 1) ? make("li", {}, "A request counts under every limit that rejects it, so limits may add up to more than the total.") : null));
};

const heading = (findings) => {
    const set = findings.sets[0];
    const span = findings.first === undefined ? ""
        : `, ${timeText(findings.first, 1)} to ${timeText(findings.last, 1)} UTC`;
    return make("p", {class: "soft"}, `${plural(requestsOf(set), "request")}${span}`);
};

const main = () => {
    const findings = JSON.parse(document.getElementById("findings").textContent);
    const report = document.getElementById("report");
    const parts = requestsOf(findings.sets[0]) === 0
        ? [make("p", {}, "There was no request in this traffic.")]
        : findings.compared ? comparison(findings) : single(findings);
    report.append(heading(findings), ...parts.flat(), notes(findings));
    watchScheme();
};

main();
