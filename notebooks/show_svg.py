"""tc's pictures as PNG: GitHub does not show the SVG that a notebook's cell put out.

Understands what tiny_compile/cli/svg.cpp writes: rect, circle, path and text with classes, whose
style is the sheet's part for light pages.
"""
import io
import re
import xml.etree.ElementTree as ElementTree

import PIL.Image
from IPython.display import Image, display
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, PathPatch, Rectangle
from matplotlib.path import Path

DPI, SCALE = 96, 1.25


def sheet(text):
    light = text.split("@media")[0]
    rules = re.findall(r"([^{}]+)\{([^}]*)\}", light)
    return [(name.strip().lstrip("."), dict(p.split(":", 1) for p in body.split(";") if p))
            for names, body in rules for name in names.split(",")]


def style_of(element, rules, tag):
    classes = element.get("class", "").split() + [tag]
    style = {}
    for name, properties in rules:
        if name in classes:
            style.update(properties)
    return style


def path_of(d):
    """M, L, C absolute and the arrow head's l, h, z."""
    points, codes, here = [], [], (0.0, 0.0)
    for letter, rest in re.findall(r"([MLClhz])([^MLClhz]*)", d):
        values = [float(v) for v in rest.split()]
        if letter == "z":
            points.append(here)
            codes.append(Path.CLOSEPOLY)
            continue
        pairs = [(values[0], 0.0)] if letter == "h" else list(zip(values[::2], values[1::2]))
        if letter in "lh":
            pairs = [(here[0] + x, here[1] + y) for x, y in pairs]
        points += pairs
        codes += {"M": [Path.MOVETO], "C": [Path.CURVE4] * 3}.get(letter, [Path.LINETO])
        here = pairs[-1]
    return Path(points, codes)


def shape(element, tag, number, look):
    if tag == "circle":
        return Circle((number("cx"), number("cy")), number("r"), **look)
    if tag == "path":
        return PathPatch(path_of(element.get("d")), **look)
    x, y, width, height, r = (number(k) for k in ("x", "y", "width", "height", "rx"))
    if not r:
        return Rectangle((x, y), width, height, **look)
    return FancyBboxPatch((x + r, y + r), width - 2 * r, height - 2 * r,
                          boxstyle=f"round,pad={r}", **look)


def draw(axes, element, rules):
    tag = element.tag.split("}")[1]
    number = lambda key: float(element.get(key, 0))
    style = style_of(element, rules, tag)
    if tag == "text":
        axes.text(number("x"), number("y"), element.text.replace("$", r"\$"),
                  color=style["fill"], family="DejaVu Sans Mono", va="baseline",
                  size=(11 if "font-size" in style else 12) * 72 / DPI,
                  weight=style.get("font-weight", "normal"),
                  ha={"middle": "center", "end": "right"}.get(element.get("text-anchor"), "left"))
    elif tag in ("rect", "circle", "path"):
        dash = [float(v) for v in style.get("stroke-dasharray", "").split()]
        look = {"facecolor": style.get("fill", "black"), "edgecolor": style.get("stroke", "none"),
                "linewidth": float(style.get("stroke-width", 1)) * 72 / DPI,
                "linestyle": (0, dash) if dash else "-",
                "alpha": float(style["opacity"]) if "opacity" in style else None}
        axes.add_patch(shape(element, tag, number, look))


def show_svg(text):
    root = ElementTree.fromstring(text)
    width, height = float(root.get("width")), float(root.get("height"))
    figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI * SCALE)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    rules = sheet(next(e.text for e in root if e.tag.endswith("style")))
    for element in root:
        draw(axes, element, rules)
    full, small = io.BytesIO(), io.BytesIO()
    figure.savefig(full, format="png")
    PIL.Image.open(full).convert("RGB").quantize(48).save(small, "png", optimize=True)
    display(Image(small.getvalue(), width=int(width), alt=root[0].text))
