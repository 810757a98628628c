// How does a picture look good on a light page and on a dark one, without fonts from elsewhere?
// Every shape has a class, and one style sheet colours the classes twice.
//
//   <rect class="box g0" .../>    .g0{fill:#d3e9f8} @media (prefers-color-scheme:dark){...}
#include "tiny_compile/cli/svg.h"

#include <algorithm>
#include <cmath>

#include "tiny_compile/base/error.h"
#include "tiny_compile/cli/layout.h"

namespace tiny_compile {
namespace {

constexpr double kMargin = 16, kTitle = 28, kBetweenFrames = 44;

constexpr const char* kStyle =
    "text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "fill:#1f2328}.title{font-weight:bold}.small{font-size:11px}.page{fill:#fff}"
    ".dim{fill:#59636e}.line{stroke:#8c959f;fill:none}.grid{stroke:#d1d9e0;fill:none}"
    ".arrow{stroke:#59636e;fill:none}.head{fill:#59636e}.box{fill:#f6f8fa;stroke:#8c959f}"
    ".output{stroke-width:2.5}.input{stroke-dasharray:3 2}.gone{fill:#ffd7d5;stroke:#cf222e}"
    ".new{fill:#d2f4d9;stroke:#1a7f37}.refused{stroke:#cf222e;fill:none;stroke-dasharray:5 3}"
    ".redhead{fill:#cf222e}.reason{fill:#a40e26}.peak{stroke:#cf222e;fill:none}"
    ".dot{fill:#0072b2;stroke:#fff}.ring{fill:#fff;stroke:#0072b2;stroke-width:2}"
    ".ink{fill:#fff}.quiet{opacity:.45}";
constexpr const char* kDark =
    "text{fill:#e6edf3}.page{fill:#0d1117}.dim{fill:#9198a1}.line{stroke:#6e7681}"
    ".grid{stroke:#30363d}.arrow{stroke:#9198a1}.head{fill:#9198a1}"
    ".box{fill:#161b22;stroke:#6e7681}.gone{fill:#5d1519;stroke:#ff7b72}"
    ".new{fill:#12401f;stroke:#3fb950}.refused,.peak{stroke:#ff7b72}.redhead{fill:#ff7b72}"
    ".reason{fill:#ffa198}.dot{fill:#56b4e9;stroke:#0d1117}"
    ".ring{fill:#0d1117;stroke:#56b4e9}.ink{fill:#0d1117}";

std::string number(double value) { return std::to_string(std::llround(value)); }

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '>')
      result += "&gt;";
    else if (c == '&')
      result += "&amp;";
    else if (c == '"')
      result += "&quot;";
    else
      result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result;
}

// Only the colours that the picture has.
std::string group_styles(const std::string& body, bool dark) {
  std::string text;
  for (int g = 0; g < kColours; g++) {
    if (body.find(tiny_compile::str("box g", g)) == body.npos) continue;
    text += tiny_compile::str(".g", g, "{fill:", dark ? dark_fill(g) : light_fill(g),
                              ";stroke:", dark ? dark_edge(g) : light_edge(g), "}");
  }
  return text;
}

// Drawings ---------------------------------------------------------------------------------------

std::string classes_of(const Box& box) {
  std::string classes = "box";
  if (box.group >= 0) classes += tiny_compile::str(" g", box.group % kColours);
  if (box.look == Look::Input) classes += " input";
  if (box.look == Look::Gone) classes += " gone";
  if (box.look == Look::New) classes += " new";
  return classes + (box.is_output ? " output" : "");
}

void draw_box(Svg& out, const Place& place, const Box& box, Point at) {
  const double x = at.x + place.middle.x, y = at.y + place.middle.y;
  out.rectangle(x - place.width / 2, y - place.height / 2, place.width, place.height,
                classes_of(box), box.look == Look::Input ? place.height / 2 : 4, box.mark);
  double base = y - static_cast<double>(box.lines.size()) * kLine / 2 + kLine - 4;
  for (size_t k = 0; k < box.lines.size(); k++, base += kLine)
    out.text(x, base, box.lines[k], k ? "dim" : "", "middle");
}

// Down across the layers of its stops, S-shaped between them.
void draw_route(Svg& out, const Route& route, const Arrow& arrow, Point at) {
  const Place &first = route.stops.front(), &last = route.stops.back();
  double x = at.x + first.middle.x, y = at.y + first.middle.y + first.height / 2;
  std::string d = "M" + number(x) + " " + number(y);
  for (size_t k = 1; k < route.stops.size(); k++) {
    const Place& stop = route.stops[k];
    const bool is_end = k + 1 == route.stops.size();
    const double to_x = at.x + stop.middle.x, to_y = at.y + stop.middle.y - stop.height / 2 -
                                                     (is_end && arrow.has_head ? 5 : 0);
    const double half = (y + to_y) / 2;
    d += " C" + number(x) + " " + number(half) + " " + number(to_x) + " " + number(half) + " " +
         number(to_x) + " " + number(to_y);
    x = to_x, y = at.y + stop.middle.y + stop.height / 2;
    if (is_end) break;
    d += (static_cast<int>(k) == route.label ? " M" : " L") + number(x) + " " + number(y);
  }
  out.path(d, arrow.is_refused ? "refused" : "arrow");
  const double tip = at.y + last.middle.y - last.height / 2;
  if (arrow.has_head)
    out.path("M" + number(x) + " " + number(tip) + " l-4 -7 h8 z",
             arrow.is_refused ? "redhead" : "head");
  if (route.label < 0) return;
  const Place& label = route.stops[static_cast<size_t>(route.label)];
  double base = at.y + label.middle.y - label.height / 2 + kLine - 4;
  for (const std::string& line : wrapped(arrow.label, kLabelWidth)) {
    out.text(at.x + label.middle.x, base, line, "reason small", "middle");
    base += kLine;
  }
}

// Which colour is which group, right of the drawing. Returns its width.
double draw_groups(Svg& out, const Drawing& drawing, Point at) {
  double width = 0, y = at.y;
  for (size_t g = 0; g < drawing.groups.size(); g++, y += 22) {
    out.rectangle(at.x, y, 14, 14, tiny_compile::str("box g", g % kColours), 3);
    out.text(at.x + 22, y + 11, drawing.groups[g], "small");
    width = std::max(width, 22 + text_width(drawing.groups[g]));
  }
  return width;
}

}  // namespace

void Svg::rectangle(double x, double y, double width, double height, const std::string& classes,
                    double radius, const std::string& hint) {
  body_ += "<rect class=\"" + classes + "\" x=\"" + number(x) + "\" y=\"" + number(y) +
           "\" width=\"" + number(width) + "\" height=\"" + number(height) + "\"" +
           (radius > 0 ? " rx=\"" + number(radius) + "\"" : "") +
           (hint.empty() ? "/>\n" : "><title>" + escaped(hint) + "</title></rect>\n");
}

void Svg::circle(double x, double y, double radius, const std::string& classes) {
  body_ += "<circle class=\"" + classes + "\" cx=\"" + number(x) + "\" cy=\"" + number(y) +
           "\" r=\"" + number(radius) + "\"/>\n";
}

void Svg::line(double x1, double y1, double x2, double y2, const std::string& classes) {
  path("M" + number(x1) + " " + number(y1) + " L" + number(x2) + " " + number(y2), classes);
}

void Svg::path(const std::string& d, const std::string& classes) {
  body_ += "<path class=\"" + classes + "\" d=\"" + d + "\"/>\n";
}

void Svg::text(double x, double y, const std::string& text, const std::string& classes,
               const char* anchor) {
  body_ +=
      "<text" + (classes.empty() ? "" : " class=\"" + classes + "\"") + " x=\"" + number(x) +
      "\" y=\"" + number(y) + "\"" +
      (std::string(anchor) == "start" ? "" : std::string(" text-anchor=\"") + anchor + "\"") +
      ">" + escaped(text) + "</text>\n";
}

std::string Svg::str(double width, double height, const std::string& title) const {
  const std::string w = number(width), h = number(height);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h +
         "\" viewBox=\"0 0 " + w + " " + h + "\" role=\"img\">\n<title>" + escaped(title) +
         "</title>\n<style>" + kStyle + group_styles(body_, false) +
         "\n@media (prefers-color-scheme:dark){" + kDark + group_styles(body_, true) +
         "}</style>\n<rect class=\"page\" width=\"" + w + "\" height=\"" + h + "\"/>\n" +
         body_ + "</svg>\n";
}

std::string svg(const std::vector<Drawing>& frames) {
  Svg out;
  double x = kMargin, height = 0;
  for (const Drawing& drawing : frames) {
    const LaidOut layout = lay_out(drawing);
    const Point at = {x, kMargin + kTitle};
    out.text(x, kMargin + 12, drawing.title, "title");
    for (size_t a = 0; a < drawing.arrows.size(); a++)
      draw_route(out, layout.routes[a], drawing.arrows[a], at);
    for (size_t b = 0; b < drawing.boxes.size(); b++)
      draw_box(out, layout.boxes[b], drawing.boxes[b], at);
    double width = layout.width;
    if (!drawing.groups.empty())
      width += 32 + draw_groups(out, drawing, {x + layout.width + 32, at.y});
    height = std::max({height, layout.height, static_cast<double>(drawing.groups.size()) * 22});
    x += std::max(width, text_width(drawing.title)) + kBetweenFrames;
  }
  return out.str(x - kBetweenFrames + kMargin, height + 2 * kMargin + kTitle,
                 frames.empty() ? "" : frames[0].title);
}

}  // namespace tiny_compile
