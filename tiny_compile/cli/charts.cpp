// What does the compiler do with memory, and how far from the machine's limits are its kernels?
//
//   launch   0  1  2         Gop/s |     ____ arithmetic
//   bytes  | t0 t0           |    /
//          | t1 t1 t1        |  o/   memory: a byte a second
//
// All positions are whole pixels of values that every machine computes alike.
#include "tiny_compile/cli/charts.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

#include "tiny_compile/cli/layout.h"
#include "tiny_compile/cli/svg.h"
#include "tiny_compile/loops/lives.h"

namespace tiny_compile {
namespace {

constexpr const char* kGiven = "as given";
constexpr double kMargin = 16, kLeft = 92, kTop = 80;

std::string formatted(const char* form, double value) {
  char text[32];
  std::snprintf(text, sizeof text, form, value);
  return text;
}

std::string size_text(int64_t bytes) {
  if (bytes < 10000) return tiny_compile::str(bytes, " B");
  if (bytes < 1000000) return formatted("%.1f kB", static_cast<double>(bytes) * 1e-3);
  return formatted("%.2f MB", static_cast<double>(bytes) * 1e-6);
}

// Memory -----------------------------------------------------------------------------------------

// A temporary from launch to launch. Where one is written over another, that one ends and this
// one begins in the middle of a launch.
struct Block {
  int buffer = -1;
  double begin = 0, end = 0;  // launches
  int64_t place = 0, bytes = 0;
};

std::vector<Block> blocks_of(const Program& program) {
  std::vector<Block> blocks;
  std::map<int, size_t> block_of;
  for (const Life& life : lives(program)) {
    const Buffer& buffer = program.buffers[life.buffer];
    if (buffer.role != Role::Temporary) continue;
    if (buffer.place < 0) fail("buffer ", buffer.name, " has no place: run plan_memory too");
    if (!buffer.size.is_constant()) fail("buffer ", buffer.name, " has a symbolic size");
    block_of[life.buffer] = blocks.size();
    blocks.push_back({life.buffer, static_cast<double>(life.first), life.last + 1.0,
                      buffer.place, buffer.size.constant() * size_of(buffer.type.dtype)});
  }
  for (Block& block : blocks) {
    const auto under = block_of.find(program.buffers[block.buffer].over);
    if (under == block_of.end() || blocks[under->second].end <= block.begin) continue;
    block.begin += 0.5;
    blocks[under->second].end = block.begin;
  }
  return blocks;
}

struct Alive {
  int64_t most = 0, all = 0;  // bytes at once, bytes without sharing
  size_t when = 0;            // the launch that has the most
};

Alive alive_of(const std::vector<Block>& blocks, size_t launches) {
  Alive alive;
  for (const Block& block : blocks) alive.all += block.bytes;
  for (size_t launch = 0; launch < launches; launch++) {
    const double early = static_cast<double>(launch) + 0.25;
    int64_t bytes = 0;
    for (const Block& block : blocks)
      if (block.begin < early && early < block.end) bytes += block.bytes;
    if (bytes > alive.most) alive.most = bytes, alive.when = launch;
  }
  return alive;
}

class MemoryChart {
 public:
  explicit MemoryChart(const Program& program)
      : program_(program),
        blocks_(blocks_of(program)),
        launches_(program.launches.size()),
        column_(std::clamp(620 / std::max<double>(1, static_cast<double>(launches_)), 24.0,
                           96.0)) {}

  std::string draw() {
    const Alive alive = alive_of(blocks_, launches_);
    const std::string title = "Memory of " + program_.name;
    out_.text(kMargin, 28, title, "title");
    const std::string told =
        blocks_.empty() ? "no temporaries: nothing needs a place"
                        : tiny_compile::str(
                              blocks_.size(), " temporaries, ", size_text(alive.all),
                              "; at most ", size_text(alive.most), " alive at once, in launch ",
                              alive.when, "; the arena has ", size_text(program_.arena_bytes));
    out_.text(kMargin, 46, told, "dim small");
    draw_axes();
    for (size_t k = 0; k < blocks_.size(); k++) draw_block(blocks_[k], k);
    draw_peak();
    const double bottom = draw_launches();
    const double right = kLeft + column_ * static_cast<double>(launches_);
    return out_.str(std::max({right + 40, kMargin * 2 + text_width(told), widest_ + kMargin}),
                    bottom, title);
  }

 private:
  static constexpr double kHeight = 300;
  static constexpr size_t kInColumn = 12;

  double y(int64_t byte) const {
    return kTop + kHeight -
           kHeight * static_cast<double>(byte) /
               static_cast<double>(std::max<int64_t>(program_.arena_bytes, 1));
  }

  void draw_axes() {
    const double right = kLeft + column_ * static_cast<double>(launches_);
    for (size_t k = 0; k <= launches_; k++) {
      const double x = kLeft + column_ * static_cast<double>(k);
      out_.line(x, kTop, x, kTop + kHeight, "grid");
      if (k < launches_)
        out_.text(x + column_ / 2, kTop + kHeight + 16, std::to_string(k), "dim small",
                  "middle");
    }
    out_.line(kLeft, kTop + kHeight, right, kTop + kHeight, "line");
    out_.text(kLeft - 8, kTop + kHeight + 16, "launch", "dim small", "end");
    out_.text(kLeft - 8, kTop + kHeight, "0", "dim small", "end");
  }

  void draw_block(const Block& block, size_t number) {
    const Buffer& buffer = program_.buffers[block.buffer];
    const double x = kLeft + column_ * block.begin, top = y(block.place + block.bytes),
                 width = column_ * (block.end - block.begin),
                 height = std::max(y(block.place) - top, 2.0);
    const std::string text = buffer.name + " " + size_text(block.bytes);
    const std::string over =
        buffer.over < 0 ? "" : " over " + program_.buffers[buffer.over].name;
    out_.rectangle(x + 1, top, width - 2, height, tiny_compile::str("box g", number % kColours),
                   0,
                   tiny_compile::str(text, " ", buffer.type.str(), " at ", block.place, over));
    const std::string& shown = text_width(text) + 6 < width ? text : buffer.name;
    if (height >= 13 && text_width(shown) + 6 < width)
      out_.text(x + width / 2, top + height / 2 + 4, shown, "small", "middle");
  }

  void draw_peak() {
    if (blocks_.empty()) return;
    out_.line(kLeft, kTop, kLeft + column_ * static_cast<double>(launches_), kTop, "peak");
    out_.text(kLeft - 8, kTop + 4, size_text(program_.arena_bytes), "reason small", "end");
  }

  // The kernels of each launch, in columns.
  double draw_launches() {
    const double top = kTop + kHeight + 42;
    double x = kMargin, width = 0;
    for (size_t k = 0; k < launches_; k++) {
      std::vector<std::string> names;
      for (int id : program_.launches[k]) names.push_back(program_.kernels[id].name);
      const std::string text = tiny_compile::str(k, "  ", join(names, ", "));
      if (k > 0 && k % kInColumn == 0) x += width + 28, width = 0;
      out_.text(x, top + kLine * static_cast<double>(k % kInColumn), text, "dim small");
      width = std::max(width, text_width(text));
      widest_ = std::max(widest_, x + width);
    }
    return top + kLine * static_cast<double>(std::min(launches_, kInColumn));
  }

  const Program& program_;
  std::vector<Block> blocks_;
  size_t launches_;
  double column_, widest_ = 0;
  Svg out_;
};

// Roofline ---------------------------------------------------------------------------------------

double allowed(const Roof& roof, double intensity) {
  const double by_memory = roof.gbps * intensity;
  return roof.gflops > 0 ? std::min(roof.gflops, by_memory) : by_memory;
}

// A dot that stands for all at one place.
struct Spot {
  double x = 0, y = 0;
  Dot first;
  std::vector<std::string> names;
  int64_t bytes = 0;
};

class RooflineChart {
 public:
  RooflineChart(const std::vector<Dot>& dots, const Roof& roof) : roof_(roof) {
    double low = 0.1, high = roof.gflops > 0 ? 4 * roof.gflops / roof.gbps : 10;
    double slowest = 1e30, fastest = 0;
    for (const Dot& dot : dots) {
      low = std::min(low, std::max(dot.intensity, 0.01));
      high = std::max(high, dot.intensity * 2);
      slowest = std::min(slowest, std::max(dot.gflops, 1e-3));
      fastest = std::max(fastest, dot.gflops);
    }
    x_ = {std::floor(std::log10(low)), std::ceil(std::log10(high))};
    slowest = std::min(slowest, allowed(roof, std::pow(10.0, x_.low)));
    fastest = std::max(
        fastest, roof.gflops > 0 ? roof.gflops : allowed(roof, std::pow(10.0, x_.low)) * 10);
    y_ = {std::floor(std::log10(slowest)), std::ceil(std::log10(fastest))};
    for (const Dot& dot : dots) add(dot);
  }

  std::string draw(const std::string& title) {
    out_.text(kMargin, 28, title, "title");
    out_.text(kMargin, 46, roof_text(), "dim small");
    draw_grid();
    draw_roof();
    for (size_t k = 0; k < spots_.size(); k++) draw_spot(k);
    double right = kLeft + kWidth + 24, y = kTop + 10;
    for (size_t k = 0; k < spots_.size(); k++) y = draw_name(k, y, right);
    return out_.str(right + kMargin, std::max(kTop + kHeight + 52, y + 6), title);
  }

 private:
  static constexpr double kWidth = 480, kHeight = 320;
  struct Axis {
    double low = 0, high = 1;  // decades
  };

  double x(double intensity) const {
    const double at = std::log10(std::max(intensity, std::pow(10.0, x_.low)));
    return kLeft + kWidth * (at - x_.low) / (x_.high - x_.low);
  }
  double y(double gflops) const {
    const double at = std::log10(std::max(gflops, std::pow(10.0, y_.low)));
    return kTop + kHeight - kHeight * (at - y_.low) / (y_.high - y_.low);
  }

  void add(const Dot& dot) {
    const double at_x = x(dot.intensity), at_y = y(dot.gflops);
    const double apart = dot.bytes > 0 ? 12 : 4;  // what was measured is told apart
    for (Spot& spot : spots_) {
      if (std::hypot(spot.x - at_x, spot.y - at_y) > apart || spot.first.is_ring != dot.is_ring)
        continue;
      spot.names.push_back(dot.name);
      spot.bytes += dot.bytes;
      return;
    }
    spots_.push_back({at_x, at_y, dot, {dot.name}, dot.bytes});
  }

  std::string roof_text() const {
    return formatted("%.0f GB/s", roof_.gbps) +
           (roof_.gflops > 0 ? formatted(", %.0f Gop/s", roof_.gflops) : "") + ": " +
           roof_.whose;
  }

  void draw_grid() {
    for (double k = x_.low; k <= x_.high; k++) {
      const double at = x(std::pow(10.0, k));
      out_.line(at, kTop, at, kTop + kHeight, "grid");
      out_.text(at, kTop + kHeight + 16, formatted("%g", std::pow(10.0, k)), "dim small",
                "middle");
    }
    for (double k = y_.low; k <= y_.high; k++) {
      const double at = y(std::pow(10.0, k));
      out_.line(kLeft, at, kLeft + kWidth, at, "grid");
      out_.text(kLeft - 8, at + 4, formatted("%g", std::pow(10.0, k)), "dim small", "end");
    }
    out_.text(kLeft + kWidth / 2, kTop + kHeight + 36, "operations a byte", "small", "middle");
    out_.text(kLeft - 8, kTop - 14, "Gop/s", "small", "end");
  }

  void draw_roof() {
    const double left = std::pow(10.0, x_.low), right = std::pow(10.0, x_.high);
    const double ridge = roof_.gflops > 0
                             ? roof_.gflops / roof_.gbps
                             : std::min(right, std::pow(10.0, y_.high) / roof_.gbps);
    out_.line(x(left), y(roof_.gbps * left), x(ridge), y(roof_.gbps * ridge), "peak");
    if (roof_.gflops > 0)
      out_.line(x(ridge), y(roof_.gflops), x(right), y(roof_.gflops), "peak");
  }

  void draw_spot(size_t k) {
    const Spot& spot = spots_[k];
    const bool ring = spot.first.is_ring;
    out_.circle(spot.x, spot.y, 9, ring ? "ring" : "dot");
    out_.text(spot.x, spot.y + 4, letter(k), ring ? "small" : "small ink", "middle");
  }

  static std::string letter(size_t k) {
    return k < 26 ? std::string(1, static_cast<char>('a' + k)) : std::to_string(k);
  }

  double draw_name(size_t k, double at, double& right) {
    const Spot& spot = spots_[k];
    std::vector<std::string> names(
        spot.names.begin(),
        spot.names.begin() + std::min<std::ptrdiff_t>(3, std::ssize(spot.names)));
    std::string text = join(names, ", ");
    if (spot.names.size() > 3)
      text += tiny_compile::str(" and ", spot.names.size() - 3, " more");
    const double most = std::max(allowed(roof_, spot.first.intensity), 1e-9);
    const std::string numbers =
        formatted("%.3g operations a byte, ", spot.first.intensity) +
        (spot.bytes > 0
             ? size_text(spot.bytes)
             : formatted("%.4g Gop/s", spot.first.gflops) +
                   formatted(", %.0f%% of the roof", 100 * spot.first.gflops / most));
    const double left = kLeft + kWidth + 28;
    out_.circle(left + 8, at - 4, 8, spot.first.is_ring ? "ring" : "dot");
    out_.text(left + 8, at, letter(k), spot.first.is_ring ? "small" : "small ink", "middle");
    out_.text(left + 24, at, text, "small");
    out_.text(left + 24, at + 14, numbers, "dim small");
    right = std::max({right, left + 24 + text_width(text), left + 24 + text_width(numbers)});
    return at + 36;
  }

  Roof roof_;
  Axis x_, y_;
  std::vector<Spot> spots_;
  Svg out_;
};

// Counting ---------------------------------------------------------------------------------------

// Whether each scalar differs along the kernel's inner axes.
std::vector<bool> differs_within_rows(const Kernel& kernel) {
  std::vector<bool> differs;
  for (const Scalar& scalar : kernel.scalars) {
    bool any = scalar.mask >= 0 && differs[scalar.mask];
    for (int operand : scalar.operands) any = any || differs[operand];
    for (size_t a = static_cast<size_t>(kernel.rows); a < kernel.axes.size(); a++)
      any = any || depends_on(scalar.index, kernel.axes[a].name);
    differs.push_back(any);
  }
  return differs;
}

double value_of(const Expr& count) {
  if (!count.is_constant()) fail("sizes are symbolic: a roofline needs numbers");
  return static_cast<double>(count.constant());
}

// Of a row of a GPU's record, or of a CPU's.
std::optional<Dot> measured_dot(const Json& row) {
  const Json* name = row.find("row");
  const double bytes = row.number("bytes", 0), count = row.number("operations", 0),
               on_gpu = row.number("contestants.tiny_compile.ms", 0),
               ms = on_gpu > 0 ? on_gpu : row.number("tiny_compile.median_us", 0) * 1e-3;
  if (!name || !(bytes > 0) || !(count > 0) || !(ms > 0)) return {};
  return Dot{count / bytes, count / ms * 1e-6, name->text, false, 0};
}

// GB/s of the copy that took turns with a row of a CPU's record; 0: there was none.
double copy_beside(const Json& row) {
  const double us = row.number("copy.median_us", 0);
  return us > 0 ? row.number("gbps", 0) * row.number("tiny_compile.median_us", 0) / us : 0;
}

}  // namespace

std::string memory_chart(const Program& program) { return MemoryChart(program).draw(); }

std::string roofline(const std::vector<Dot>& dots, const Roof& roof, const std::string& title) {
  return RooflineChart(dots, roof).draw(title);
}

Roof parse_roof(const std::string& text) {
  Roof roof;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%lf,%lf%c", &roof.gbps, &roof.gflops, &rest) != 2 ||
      !(roof.gbps > 0) || !(roof.gflops > 0) || roof.gbps > 1e9 || roof.gflops > 1e12)
    fail("--roof=", text, " is not GB/s,Gop/s: write --roof=4800,67000");
  roof.whose = kGiven;
  return roof;
}

double operations(const Kernel& kernel) {
  const double rows = value_of(row_count(kernel));
  const std::vector<bool> differs = differs_within_rows(kernel);
  std::vector<double> times(kernel.scalars.size());  // each is computed
  double count = 0;
  for (const Step& step : kernel.steps) {
    const double points = rows * value_of(inner_count(kernel, step));
    if (step.kind == StepKind::Dot) count += 2 * points;
    if (step.kind != StepKind::Dot && step.kind != StepKind::Store) count += points;
    const std::vector<bool> used = reachable(kernel, step);
    for (size_t s = 0; s < used.size(); s++) {
      if (used[s]) times[s] = std::max(times[s], differs[s] ? points : rows);
    }
  }
  for (size_t s = 0; s < times.size(); s++) {
    const Scalar& scalar = kernel.scalars[s];
    if (scalar.kind == ScalarKind::Apply && info(scalar.op).result != Result::Cast)
      count += times[s];
  }
  return count;
}

std::vector<Dot> kernel_dots(const Program& program, const Roof& roof, bool is_ring) {
  std::vector<Dot> dots;
  for (const Kernel& kernel : program.kernels) {
    const int64_t bytes = bytes_moved(program, kernel);
    const double count = operations(kernel);
    if (bytes <= 0 || count <= 0) continue;
    const double intensity = count / static_cast<double>(bytes);
    dots.push_back({intensity, allowed(roof, intensity), kernel.name, is_ring, bytes});
  }
  return dots;
}

std::vector<Dot> record_dots(const Json& record, Roof& roof) {
  const Json* rows = record.find("rows");
  if (!rows) fail("not a record: it has no \"rows\"");
  double copy = record.number("copy_gbps", 0);
  std::vector<Dot> dots;
  for (const Json& row : rows->members) {
    if (row.number("threads", 1) > 1) continue;
    copy = std::max(copy, copy_beside(row));
    if (const std::optional<Dot> dot = measured_dot(row)) dots.push_back(*dot);
  }
  if (dots.empty()) fail("no row of this record has operations and bytes");
  if (copy <= 0) return dots;
  const Json* device = record.find("device");
  const bool is_given = roof.whose == kGiven,
             is_h200 = device && device->text.find("H200") != std::string::npos;
  roof.gbps = copy;
  if (!is_given && !is_h200) roof.gflops = 0;
  roof.whose = "a copy measured with these rows" +
               (roof.gflops > 0 ? "; arithmetic: " + roof.whose : "");
  return dots;
}

}  // namespace tiny_compile
