// In which order are the elements of a row added? The order depends on the row's length alone:
// chunks of 1024, a short one filled with the identity; the upper half of a chunk is added to its
// lower until one is left; the chunks' results reduce by the same rule.
//
//   x0 x1 x2 -0   =>   x0+x2  x1-0   =>   (x0+x2)+x1
#include "tiny_compile/cli/tree_picture.h"

#include <algorithm>
#include <vector>

#include "tiny_compile/base/error.h"
#include "tiny_compile/base/integer.h"
#include "tiny_compile/cli/layout.h"
#include "tiny_compile/cli/svg.h"
#include "tiny_compile/graph/op.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostLeaves = 32, kMostTerms = 64, kMostChunks = 8;
constexpr double kMargin = 16, kLane = 40, kRow = 46;

std::string sum_of(const std::string& lhs, const std::string& rhs) {
  if (rhs.empty()) return lhs;
  auto wrap = [](const std::string& term) {
    return term.find(' ') == term.npos ? term : "(" + term + ")";
  };
  return wrap(lhs) + " + " + wrap(rhs);
}

// Every addition -----------------------------------------------------------------------------------

class SmallTree {
 public:
  explicit SmallTree(int64_t length) : length_(length), room_(power_of_two_from(length)) {}

  std::string draw() {
    const std::string title = tiny_compile::str("A sum of ", length_, " elements");
    out_.text(kMargin, 28, title, "title");
    const std::string told = tiny_compile::str(
        "Filled up with -0.0, which changes no sum; then the upper half is added to the "
        "lower.");
    out_.text(kMargin, 46, told, "dim small");
    for (int64_t k = 0; k < room_; k++) draw_leaf(k);
    double y = kTop;
    int64_t filled = length_;
    for (int64_t half = room_ / 2; half >= 1; half /= 2, y += kRow) {
      out_.text(kMargin, y + kRow + 4, tiny_compile::str("+ ", half, " apart"), "dim small");
      for (int64_t k = 0; k < half; k++) draw_addition(k, half, filled, y);
      filled = std::min(filled, half);
    }
    return finish(title, told, y + 44);
  }

 private:
  static constexpr double kLeft = 110, kTop = 78;

  static double x(int64_t lane) { return kLeft + kLane * (static_cast<double>(lane) + 0.5); }

  void draw_leaf(int64_t k) {
    const bool real = k < length_;
    out_.rectangle(x(k) - 16, kTop - 11, 32, 22, real ? "box g0" : "box quiet", 4);
    out_.text(x(k), kTop + 4, real ? tiny_compile::str("x", k) : "-0",
              real ? "small" : "small dim", "middle");
  }

  void draw_addition(int64_t k, int64_t half, int64_t filled, double y) {
    const bool real = k < filled, adds = k + half < filled;
    const double from = y + 11, to = y + kRow;
    out_.line(x(k), from, x(k), to - 11, real ? "arrow" : "grid");
    out_.path(
        tiny_compile::str("M", static_cast<int>(x(k + half)), " ", static_cast<int>(from), " C",
                          static_cast<int>(x(k + half)), " ", static_cast<int>(from + 22), " ",
                          static_cast<int>(x(k) + 14), " ", static_cast<int>(to - 14), " ",
                          static_cast<int>(x(k) + 9), " ", static_cast<int>(to - 7)),
        adds ? "arrow" : "grid");
    out_.circle(x(k), to, 11, adds ? "box g1" : real ? "box g0" : "box quiet");
    out_.text(x(k), to + 4,
              adds   ? "+"
              : real ? "="
                     : "-0",
              adds || real ? "" : "dim small", "middle");
  }

  std::string finish(const std::string& title, const std::string& told, double y) {
    double width = std::max(kMargin * 2 + text_width(told), x(room_));
    for (const std::string& line : wrapped(sum_expression(length_), 96)) {
      out_.text(kMargin, y, line, "small");
      width = std::max(width, 2 * kMargin + text_width(line));
      y += kLine;
    }
    return out_.str(width, y + 6, title);
  }

  int64_t length_, room_;
  Svg out_;
};

// Chunks -----------------------------------------------------------------------------------------

class ChunkTree {
 public:
  explicit ChunkTree(int64_t length) : length_(length) {}

  std::string draw() {
    const std::string title = tiny_compile::str("A sum of ", length_, " elements");
    out_.text(kMargin, 28, title, "title");
    out_.text(kMargin, 46, "The same tree for every batch, thread, schedule and machine.",
              "dim small");
    double y = 78;
    std::string what = "elements";
    for (int64_t left = length_; left > 1; what = "results") {
      y = draw_chunks(left, what, y);
      left = ceil_divide(left, kChunk);
    }
    out_.text(kMargin + kWide / 2, y + 4, "1 result", "small", "middle");
    draw_halvings(78);
    return out_.str(kHalvings + 460, std::max(y + 24, 78.0 + 11 * 24 + 40), title);
  }

 private:
  static constexpr double kHalvings = 620, kWide = 560;

  double draw_chunks(int64_t count, const std::string& what, double y) {
    const int64_t chunks = ceil_divide(count, kChunk);
    const int64_t last = count - (chunks - 1) * kChunk;
    out_.text(
        kMargin, y + 4,
        tiny_compile::str(
            count, " ", what, " are ", chunks, chunks == 1 ? " chunk" : " chunks", " of 1024",
            last < kChunk ? tiny_compile::str(chunks == 1 ? ": " : ", the last ", last, " and ",
                                              kChunk - last, " times -0.0")
                          : ""),
        "small");
    const int64_t shown = std::min(chunks, kMostChunks);
    const double width = kWide / static_cast<double>(shown);
    for (int64_t k = 0; k < shown; k++) {
      const int64_t chunk = shown < chunks && k == shown - 1 ? chunks - 1 : k;
      draw_chunk(kMargin + width * static_cast<double>(k), y + 14, width - 6, chunk,
                 chunk == chunks - 1 ? last : kChunk, shown < chunks && k == shown - 2);
    }
    return y + 92;
  }

  // A bar as long as the chunk is full, and the arrow of its result.
  void draw_chunk(double x, double y, double width, int64_t chunk, int64_t filled, bool skips) {
    out_.rectangle(x, y, width, 26, "box quiet", 3);
    if (!skips)
      out_.rectangle(x, y, width * static_cast<double>(filled) / static_cast<double>(kChunk),
                     26, "box g0", 3);
    out_.text(x + width / 2, y + 17, skips ? "..." : std::to_string(chunk), "small", "middle");
    if (skips) return;
    out_.line(x + width / 2, y + 26, x + width / 2, y + 46, "arrow");
    out_.path(tiny_compile::str("M", static_cast<int>(x + width / 2), " ",
                                static_cast<int>(y + 53), " l-4 -7 h8 z"),
              "head");
  }

  void draw_halvings(double y) {
    out_.text(kHalvings, y + 4, "Each chunk: the upper half is added to the lower.", "small");
    y += 14;
    double width = 300;
    for (int64_t half = kChunk / 2; half >= 1; half /= 2, y += 24, width /= 2) {
      out_.rectangle(kHalvings, y, std::max(width / 2, 2.0), 18, "box g1", 2);
      out_.rectangle(kHalvings + width / 2, y, std::max(width / 2, 2.0), 18, "box g0", 2);
      out_.text(kHalvings + 312, y + 13, tiny_compile::str("x[l] += x[l + ", half, "]"),
                "dim small");
    }
    out_.rectangle(kHalvings, y, 2, 18, "box g1", 2);
    out_.text(kHalvings + 312, y + 13, "1 result", "dim small");
  }

  int64_t length_;
  Svg out_;
};

}  // namespace

std::string sum_expression(int64_t length) {
  CHECK(length >= 1 && length <= kMostTerms);
  std::vector<std::string> terms;
  for (int64_t k = 0; k < length; k++) terms.push_back(tiny_compile::str("x", k));
  terms.resize(static_cast<size_t>(power_of_two_from(length)));
  while (terms.size() > 1) {
    const size_t half = terms.size() / 2;
    for (size_t k = 0; k < half; k++) terms[k] = sum_of(terms[k], terms[k + half]);
    terms.resize(half);
  }
  return terms[0];
}

std::string tree_picture(int64_t length) {
  if (length < 1) fail("a tree has at least one element, not ", length);
  return length <= kMostLeaves ? SmallTree(length).draw() : ChunkTree(length).draw();
}

}  // namespace tiny_compile
