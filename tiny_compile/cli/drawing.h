// Boxes and arrows: what the pictures of graphs and programs are made of. One value, three texts:
// Mermaid, DOT and (svg.h) SVG.
#pragma once

#include <string>
#include <vector>

namespace tiny_compile {

// Gone: the next pass takes it out. New: the last one put it in.
enum class Look { Plain, Input, Gone, New };

struct Box {
  std::vector<std::string> lines;  // "%4 exp", "f32[64,1000]"
  Look look = Look::Plain;
  int group = -1;  // whose colour it has; -1: none's
  bool is_output = false;
  std::string mark;  // more than its group's: "k0 k1"
};

// From an earlier box to a later one. A refused arrow joins what could not be one kernel; it has
// no head where no data goes that way.
struct Arrow {
  int from = -1, to = -1;
  bool is_refused = false, has_head = true;
  std::string label;
};

struct Drawing {
  std::string title;
  std::vector<Box> boxes;  // each after those that have arrows to it
  std::vector<Arrow> arrows;
  std::vector<std::string> groups;  // their names
};

// Several drawings are frames of one, beside each other. Both texts are the same on every
// machine.
std::string mermaid(const std::vector<Drawing>& frames);
std::string dot(const std::vector<Drawing>& frames);

// Lines of at most `width` characters, broken at blanks.
std::vector<std::string> wrapped(const std::string& text, size_t width);

inline constexpr int kColours = 8;  // groups beyond them begin again with the first
const char* light_fill(int group);  // "#cfe8ff"
const char* light_edge(int group);
const char* dark_fill(int group);
const char* dark_edge(int group);

}  // namespace tiny_compile
