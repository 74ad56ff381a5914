/* SPDX-License-Identifier: MIT */
/*
 * Numbers and times as the text summary of the command writes them, and elements out of them. All
 * text reaches the page as text nodes, so that no key of a log is ever read as markup.
 */
"use strict";

const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

/* Never "0.0 %" for something, or "100.0 %" for less than all. */
const share = (part, whole) => {
    if (whole === 0)
        return "-";
    const tenths = Math.floor((part * 1000 + Math.floor(whole / 2)) / whole);
    if (part > 0 && tenths === 0)
        return "<0.1 %";
    if (part < whole && tenths === 1000)
        return ">99.9 %";
    return `${Math.floor(tenths / 10)}.${tenths % 10} %`;
};

const plural = (count, noun) => `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;

/* "2015-05-17 10:05:03", no finer than `width` seconds ask for. */
const timeText = (seconds, width) => {
    const text = new Date(seconds * 1000).toISOString().replace("T", " ").replace("Z", "");
    if (width % 86400 === 0)
        return text.slice(0, -13);
    if (width % 60 === 0)
        return text.slice(0, -7);
    return width % 1 === 0 ? text.slice(0, -4) : text;
};

const widthText = (seconds) => {
    const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"], [0.001, "ms"]];
    const [size, name] = units.find(([unit]) => seconds >= unit && seconds * 1000 % (unit * 1000) === 0) || [1, "s"];
    return `${Math.round(seconds / size)} ${name}`;
};

/* A wait, in units that read well. */
const waitText = (seconds) => {
    const two = (large, small, size) => {
        const whole = Math.round(seconds / size * 60);
        const rest = whole % 60;
        return `${Math.floor(whole / 60)} ${large}${rest > 0 ? ` ${rest} ${small}` : ""}`;
    };
    if (seconds === 0)
        return "0";
    if (seconds >= 7200)
        return two("h", "min", 3600);
    if (seconds >= 120)
        return two("min", "s", 60);
    return seconds >= 1 ? `${Number(seconds.toPrecision(3))} s`
                        : `${Number((seconds * 1000).toPrecision(3))} ms`;
};

const binText = (axis, index) =>
    `${timeText(axis.start + index * axis.width, axis.width)}, ${widthText(axis.width)}`;

/* make("p", {class: "soft"}, "text", element, ...) */
const make = (tag, attributes, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {}))
        element.setAttribute(name, value);
    element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
    return element;
};

const swatch = (kind) => make("span", {class: `swatch ${kind}`, "aria-hidden": "true"});

/* rows: arrays of text; the first of each is its heading. */
const table = (caption, head, rows) =>
    make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
         make("table", {},
              make("caption", {}, caption),
              make("thead", {}, make("tr", {}, head.map((name, index) =>
                  make("th", {scope: "col", class: index > 0 ? "count" : ""}, name)))),
              make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell, index) =>
                  index > 0 ? make("td", {class: "count"}, cell)
                            : make("th", {scope: "row", class: "number"}, cell)))))));

/* A table that stands in for a chart, made when somebody opens it. */
const folded = (title, makeTable) => {
    const details = make("details", {class: "numbers"}, make("summary", {}, title));
    details.addEventListener("toggle", () => {
        if (details.open && details.children.length === 1)
            details.append(makeTable());
    });
    return details;
};
