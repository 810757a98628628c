// How do boxes and arrows read as text for Mermaid (GitHub draws it in a page) and for graphviz?
//
//   x0 -> exp, both in k0   =>   subgraph g0["k0 exp_1"]
//                                  n0["x0"] ...
//
// A frame is a cluster where there are several, a group of boxes is a cluster where there is one.
#include "tiny_compile/cli/drawing.h"

#include <sstream>

#include "tiny_compile/base/error.h"

namespace tiny_compile {
namespace {

constexpr size_t kReasonWidth = 30;

// Okabe and Ito's hues, which every kind of colour blindness tells apart, made pale and deep.
struct Colour {
  const char *light_fill, *light_edge, *dark_fill, *dark_edge;
};
constexpr Colour kPalette[kColours] = {
    {"#d3e9f8", "#0072b2", "#0b3a57", "#56b4e9"}, {"#fde8c4", "#b97900", "#4d3300", "#e69f00"},
    {"#cdeee3", "#00795a", "#003d2e", "#2fc79b"}, {"#f6dceb", "#a8527f", "#4a1f38", "#e08fbb"},
    {"#fbf6c0", "#8f8600", "#3f3b00", "#d9cf3f"}, {"#dfe3ea", "#54606f", "#2d343d", "#9aa7b5"},
    {"#e5dcf8", "#6a48b0", "#2f2150", "#a98be8"}, {"#d9f2c8", "#4c7d22", "#223a0f", "#8cc65c"}};

const Colour& colour(int group) { return kPalette[group % kColours]; }

// In the quotes of either language. Mermaid names characters by number, graphviz by backslash.
std::string for_mermaid(const std::string& text) {
  return replace_all(replace_all(replace_all(text, "#", "#35;"), "\"", "#quot;"), "<", "#lt;");
}
std::string for_dot(const std::string& text) {
  return replace_all(replace_all(text, "\\", "\\\\"), "\"", "\\\"");
}

std::string joined(const std::vector<std::string>& lines, const char* between,
                   std::string (*escape)(const std::string&)) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : between) + escape(line);
  return text;
}

// A language's way to write the parts; both languages have the same parts.
class Writer {
 public:
  explicit Writer(const char* prefix) : prefix_(prefix) {}
  virtual ~Writer() = default;

  // Frames, in each the boxes outside groups and then the groups, then the arrows.
  std::string write(const std::vector<Drawing>& frames) {
    for (size_t k = 0; k < frames.size(); k++) {
      frame_ = frames.size() > 1 ? tiny_compile::str("f", k) : "";
      if (!frame_.empty()) open(frame_, frames[k].title);
      write_boxes(frames[k]);
      for (const Arrow& arrow : frames[k].arrows) write_arrow(arrow);
      if (!frame_.empty()) close();
    }
    return out_.str();
  }

 protected:
  virtual void open(const std::string& id, const std::string& title, int group = -1) = 0;
  virtual void close() = 0;
  virtual void write_box(const std::string& id, const Box& box) = 0;
  virtual void write_arrow(const Arrow& arrow) = 0;

  std::string id(int box) const { return tiny_compile::str(frame_, prefix_, box); }
  std::ostringstream& line() {
    out_ << std::string(2 * depth_, ' ');
    return out_;
  }

  std::ostringstream out_;
  size_t depth_ = 1;

 private:
  void write_boxes(const Drawing& drawing) {
    for (int group = -1; group < static_cast<int>(drawing.groups.size()); group++) {
      if (group >= 0) open(tiny_compile::str(frame_, "g", group), drawing.groups[group], group);
      for (size_t b = 0; b < drawing.boxes.size(); b++) {
        if (drawing.boxes[b].group == group)
          write_box(id(static_cast<int>(b)), drawing.boxes[b]);
      }
      if (group >= 0) close();
    }
  }

  std::string prefix_, frame_;
};

class Mermaid : public Writer {
 public:
  Mermaid() : Writer("n") {}
  std::string text(const std::vector<Drawing>& frames) {
    out_ << "flowchart TD\n";
    write(frames);
    out_ << "  classDef gone fill:#fdd,stroke:#c00,color:#600\n"
            "  classDef new fill:#dfd,stroke:#080,color:#040\n"
            "  classDef output stroke-width:3px\n";
    for (const std::string& style : styles_) out_ << style;
    return out_.str();
  }

 private:
  void open(const std::string& id, const std::string& title, int group) override {
    line() << "subgraph " << id << "[\"" << for_mermaid(title) << "\"]\n";
    depth_++;
    if (group >= 0)
      styles_.push_back(tiny_compile::str("  style ", id, " fill:", colour(group).light_fill,
                                          ",stroke:", colour(group).light_edge,
                                          ",color:#111\n"));
  }
  void close() override {
    depth_--;
    line() << "end\n";
  }
  void write_box(const std::string& id, const Box& box) override {
    const bool round = box.look == Look::Input;
    line() << id << (round ? "([\"" : "[\"") << joined(box.lines, "<br>", for_mermaid)
           << (round ? "\"])" : "\"]")
           << (box.look == Look::Gone  ? ":::gone"
               : box.look == Look::New ? ":::new"
               : box.is_output         ? ":::output"
                                       : "")
           << "\n";
  }
  void write_arrow(const Arrow& arrow) override {
    const char* dash = arrow.is_refused ? (arrow.has_head ? "-.->" : "-.-") : "-->";
    line() << id(arrow.from) << " " << dash;
    if (!arrow.label.empty())
      out_ << "|\"" << joined(wrapped(arrow.label, kReasonWidth), "<br>", for_mermaid) << "\"|";
    out_ << " " << id(arrow.to) << "\n";
  }

  std::vector<std::string> styles_;
};

class Dot : public Writer {
 public:
  Dot() : Writer("n") {}
  std::string text(const std::vector<Drawing>& frames) {
    out_ << "digraph {\n"
            "  node [shape=box, style=\"filled,rounded\", fillcolor=\"#f6f8fa\", "
            "color=\"#8c959f\", fontname=monospace, fontsize=11];\n"
            "  edge [color=\"#59636e\", fontname=monospace, fontsize=10];\n"
            "  graph [fontname=monospace, fontsize=11, compound=true];\n";
    write(frames);
    return out_.str() + "}\n";
  }

 private:
  void open(const std::string& id, const std::string& title, int group) override {
    line() << "subgraph cluster_" << id << " {\n";
    depth_++;
    line() << "label=\"" << for_dot(title) << "\"; style=\"filled,rounded\"; color=\""
           << (group < 0 ? "#d1d9e0" : colour(group).light_edge) << "\"; fillcolor=\""
           << (group < 0 ? "#ffffff" : colour(group).light_fill) << "\";\n";
  }
  void close() override {
    depth_--;
    line() << "}\n";
  }
  void write_box(const std::string& id, const Box& box) override {
    line() << id << " [label=\"" << joined(box.lines, "\\n", for_dot) << "\""
           << (box.look == Look::Gone  ? ", fillcolor=\"#ffdddd\", color=\"#cc0000\""
               : box.look == Look::New ? ", fillcolor=\"#ddffdd\", color=\"#008800\""
                                       : "")
           << (box.look == Look::Input ? ", shape=ellipse" : "")
           << (box.is_output ? ", penwidth=2.5" : "") << "];\n";
  }
  void write_arrow(const Arrow& arrow) override {
    line() << id(arrow.from) << " -> " << id(arrow.to);
    std::vector<std::string> parts;
    if (arrow.is_refused) parts.push_back("style=dashed, color=\"#cf222e\"");
    if (!arrow.has_head) parts.push_back("dir=none");
    if (!arrow.label.empty())
      parts.push_back("fontcolor=\"#cf222e\", label=\"" +
                      joined(wrapped(arrow.label, kReasonWidth), "\\n", for_dot) + "\"");
    out_ << (parts.empty() ? "" : " [" + join(parts, ", ") + "]") << ";\n";
  }
};

}  // namespace

std::string mermaid(const std::vector<Drawing>& frames) { return Mermaid().text(frames); }
std::string dot(const std::vector<Drawing>& frames) { return Dot().text(frames); }

std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.empty() && lines.back().size() + 1 + word.size() <= width)
      lines.back() += " " + word;
    else
      lines.push_back(word);
  }
  return lines;
}

const char* light_fill(int group) { return colour(group).light_fill; }
const char* light_edge(int group) { return colour(group).light_edge; }
const char* dark_fill(int group) { return colour(group).dark_fill; }
const char* dark_edge(int group) { return colour(group).dark_edge; }

}  // namespace tiny_compile
