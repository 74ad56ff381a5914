/* SPDX-License-Identifier: MIT */
/*
 * Charts by uPlot, in the colours and patterns of the style sheet. A chart is a function of its
 * place: it is drawn anew when its place changes its width, when the scheme changes from light to
 * dark, and for paper.
 *
 * Stacks are drawn from the back: the bar of all first, in the pattern of what is on top, then the
 * others over it. Patterns are opaque, or what is behind would shine through.
 */
"use strict";

const KINDS = ["once", "delayed", "rejected"];
const KIND_NAMES = {once: "at once", delayed: "delayed", rejected: "rejected"};
const DASHES = [[], [9, 4], [2, 3], [12, 4, 2, 4]];

const charts = new Set();

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/* The tile that a kind of answer is painted with. */
const pattern = (context, kind) => {
    const ratio = Math.max(1, Math.round(devicePixelRatio));
    const size = 6 * ratio;
    const tile = document.createElement("canvas");
    const paint = tile.getContext("2d");
    tile.width = tile.height = size;
    paint.fillStyle = colour(kind);
    paint.fillRect(0, 0, size, size);
    paint.strokeStyle = colour(`${kind}-mark`);
    paint.lineWidth = (kind === "delayed" ? 1.4 : 1) * ratio;
    const lines = kind === "once" ? [] : kind === "delayed" ? [1] : [1, -1];
    for (const slope of lines) {
        paint.beginPath();
        for (const shift of [-size, 0, size]) {
            paint.moveTo(shift - 1, slope > 0 ? size + 1 : -1);
            paint.lineTo(shift + size + 1, slope > 0 ? -1 : size + 1);
        }
        paint.stroke();
    }
    return context.createPattern(tile, "repeat");
};

/* Keeps a chart drawn in `place`: draw(width) returns a new uPlot. */
const keepDrawn = (place, draw) => {
    let plot = null;
    let width = 0;
    const again = () => {
        const now = Math.floor(place.clientWidth);
        if (now === 0)
            return;
        if (plot)
            plot.destroy();
        width = now;
        plot = draw(now);
    };
    new ResizeObserver(() => {
        if (Math.floor(place.clientWidth) !== width)
            again();
    }).observe(place);
    charts.add(again);
};

const drawAllAgain = () => charts.forEach((again) => again());

/* On paper, colours are those of light, and everything is unfolded. */
const watchScheme = () => {
    let folds = [];
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAllAgain);
    addEventListener("beforeprint", () => {
        folds = [...document.querySelectorAll("details.set:not([open])")];
        folds.forEach((details) => { details.open = true; });
        document.documentElement.classList.add("paper");
        drawAllAgain();
    });
    addEventListener("afterprint", () => {
        folds.forEach((details) => { details.open = false; });
        document.documentElement.classList.remove("paper");
        drawAllAgain();
    });
};

/* [[a...], [b...], [c...]] as [a + b + c, a + b, a], the order in which stacks are drawn. */
const stacked = (kinds) => {
    const sums = kinds.map((_, top) => kinds[0].map((_, i) =>
        kinds.slice(0, top + 1).reduce((sum, counts) => sum + counts[i], 0)));
    return sums.reverse();
};

const stackSeries = () => KINDS.slice().reverse().map((kind) => ({
    label: KIND_NAMES[kind],
    fill: (plot) => pattern(plot.ctx, kind),
    stroke: "transparent",
    width: 0,
    points: {show: false},
    paths: uPlot.paths.bars({size: [1, Infinity], align: 1, gap: 0}),
}));

const binTimes = (axis) => Array.from({length: axis.bins}, (_, i) => axis.start + i * axis.width);

const timeScale = (axis) => ({
    time: true,
    range: () => [axis.start, axis.start + axis.bins * axis.width],
});

const countScale = () => ({range: (plot, min, max) => [0, max > 0 ? max * 1.06 : 1]});

/* Labels of times: the date where a day begins, and at the first of them that has room for it. */
const tickTexts = (plot, splits) => {
    const near = splits.length > 1 ? splits[1] - splits[0] : 1;
    const first = splits.length > 1 && plot.valToPos(splits[0], "x") < 36 ? 1 : 0;
    return splits.map((seconds, index) => {
        const date = new Date(seconds * 1000).toISOString();
        if (near % 86400 === 0)
            return date.slice(0, -14);
        const time = near % 60 === 0 ? date.slice(-13, -8) : date.slice(-13, near % 1 === 0 ? -5 : -1);
        const dated = index === first || (index > first && seconds % 86400 === 0);
        return dated ? `${time}\n${date.slice(0, -14)}` : time;
    });
};

const baseAxis = (more) => ({
    stroke: colour("soft"),
    grid: {stroke: colour("grid"), width: 1},
    ticks: {stroke: colour("line"), width: 1, size: 5},
    font: "12px system-ui, sans-serif",
    ...more,
});

const countAxis = () => baseAxis({
    size: (plot, values) => 14 + 7.2 * Math.max(1, ...(values || []).map((value) => value.length)),
    values: (plot, splits) => splits.map((value) => value % 1 === 0 ? grouped(value) : ""),
});

const options = (width, height, more) => ({
    width,
    height,
    legend: {show: false},
    cursor: {drag: {setScale: false, x: false, y: false}, points: {show: false}, y: false},
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
    ...more,
});

/* Says in `readout` what is under the pointer, and `rest` when it is elsewhere. */
const pointerHook = (readout, say, rest) => ({
    setCursor: [(plot) => {
        const index = plot.cursor.idx;
        readout.textContent = index === null || index === undefined ? rest : say(index);
    }],
});

/* The bin that has the pointer in it, not the one that begins nearest. */
const binUnder = (plot, series, nearest, value) => {
    const times = plot.data[0];
    return nearest > 0 && times[nearest] > value ? nearest - 1 : nearest;
};

const stackChart = (place, axis, kinds, readout, say, rest) => {
    readout.textContent = rest;
    keepDrawn(place, (width) => new uPlot(options(width, width < 500 ? 220 : 300, {
        scales: {x: timeScale(axis), y: countScale()},
        axes: [baseAxis({values: tickTexts, space: 74, size: 46}), countAxis()],
        series: [{}, ...stackSeries()],
        cursor: {...options().cursor, dataIdx: binUnder},
        hooks: pointerHook(readout, say, rest),
    }), [binTimes(axis), ...stacked(kinds)], place));
};

const sparkChart = (place, axis, kinds, most) =>
    keepDrawn(place, (width) => new uPlot(options(width, 34, {
        scales: {x: timeScale(axis), y: {range: () => [0, most]}},
        axes: [{show: false}, {show: false}],
        padding: [1, 0, 1, 0],
        series: [{}, ...stackSeries()],
        cursor: {show: false},
        hooks: {draw: [(plot) => {
            const {left, top, width: wide, height} = plot.bbox;
            plot.ctx.fillStyle = colour("line");
            plot.ctx.fillRect(left, top + height - 1, wide, 1);
        }]},
    }), [binTimes(axis), ...stacked(kinds)], place));

/* One line a set: `lines` are counts by bin. */
const lineChart = (place, axis, lines, readout, say, rest) => {
    const times = [...binTimes(axis), axis.start + axis.bins * axis.width];
    readout.textContent = rest;
    keepDrawn(place, (width) => new uPlot(options(width, width < 500 ? 220 : 280, {
        scales: {x: timeScale(axis), y: countScale()},
        axes: [baseAxis({values: tickTexts, space: 74, size: 46}), countAxis()],
        series: [{}, ...lines.map((_, index) => ({
            stroke: colour(`set${index}`),
            width: 2,
            dash: DASHES[index % DASHES.length],
            points: {show: false},
            paths: uPlot.paths.stepped({align: 1}),
        }))],
        cursor: {...options().cursor, dataIdx: binUnder},
        hooks: pointerHook(readout, (index) => say(Math.min(index, axis.bins - 1)), rest),
    }), [times, ...lines.map((counts) => [...counts, counts[counts.length - 1]])], place));
};

/* Bars of one kind over a length of time. */
const lengthChart = (place, axis, counts, kind, readout, say, rest) => {
    readout.textContent = rest;
    keepDrawn(place, (width) => new uPlot(options(width, width < 500 ? 200 : 240, {
        scales: {x: {time: false, range: () => [0, axis.start + axis.bins * axis.width]}, y: countScale()},
        axes: [baseAxis({values: (plot, splits) => splits.map(waitText), space: 84, size: 30}), countAxis()],
        series: [{}, stackSeries().find((series) => series.label === KIND_NAMES[kind])],
        cursor: {...options().cursor, dataIdx: binUnder},
        hooks: pointerHook(readout, say, rest),
    }), [binTimes(axis), counts], place));
};
