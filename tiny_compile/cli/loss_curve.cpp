// How did the loss fall? Each column is the mean of its steps: single losses jump about.
//
//   losses of 4 steps, 2 columns:   8 |*      bits a byte
//                                   4 | *
//                                     +--
#include "tiny_compile/cli/loss_curve.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tiny_compile/base/error.h"
#include "tiny_compile/cli/layout.h"
#include "tiny_compile/cli/svg.h"

namespace tiny_compile {
namespace {

constexpr double kWidth = 640, kHeight = 300, kLeft = 56, kTop = 64, kRight = 132;

std::string one_digit(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string two_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

// The means of `count` runs of neighbours, in bits; fewer where there are fewer losses.
std::vector<double> means(const std::vector<float>& losses, size_t count) {
  count = std::min(count, losses.size());
  std::vector<double> result;
  for (size_t k = 0; k < count; k++) {
    const size_t begin = k * losses.size() / count, end = (k + 1) * losses.size() / count;
    double sum = 0;
    for (size_t i = begin; i < end; i++) sum += losses[i];
    result.push_back(sum / static_cast<double>(end - begin) / std::log(2.0));
  }
  return result;
}

struct Range {
  double low = 0, high = 1;
  double share(double value) const { return (value - low) / (high - low); }  // 0 at the bottom
};

Range range_of(const std::vector<double>& bits, const LossCurve& curve) {
  std::vector<double> all = bits;
  for (const auto& [step, held] : curve.held) all.push_back(held);
  if (curve.five_gram > 0) all.push_back(curve.five_gram);
  if (all.empty()) return {};
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  return {std::floor(*least), std::max(std::ceil(*most), std::floor(*least) + 1)};
}

class Canvas {
 public:
  Canvas(int columns, int rows, Range range)
      : lines_(static_cast<size_t>(rows), std::string(static_cast<size_t>(columns), ' ')),
        range_(range) {}

  // `across` and the value's place in [0, 1].
  void put(double across, double value, char mark) {
    const auto column = static_cast<double>(lines_[0].size() - 1);
    const auto row = static_cast<double>(lines_.size() - 1);
    const double up = std::clamp(range_.share(value), 0.0, 1.0);
    lines_[static_cast<size_t>(std::lround(row * (1 - up)))]
          [static_cast<size_t>(std::lround(std::clamp(across, 0.0, 1.0) * column))] = mark;
  }

  std::string text(int64_t steps) const {
    std::string result = "  bits a byte\n";
    for (size_t k = 0; k < lines_.size(); k++) {
      const double up = 1 - static_cast<double>(k) / static_cast<double>(lines_.size() - 1);
      char label[16];
      std::snprintf(label, sizeof label, "%6.2f |",
                    range_.low + up * (range_.high - range_.low));
      const size_t end = lines_[k].find_last_not_of(' ');
      result += label + lines_[k].substr(0, end == std::string::npos ? 0 : end + 1) + "\n";
    }
    const std::string last = std::to_string(steps) + " steps";
    result += "       +" + std::string(lines_[0].size(), '-') + "\n       0";
    return result +
           std::string(lines_[0].size() - std::min(lines_[0].size(), last.size()), ' ') + last +
           "\n";
  }

 private:
  std::vector<std::string> lines_;
  Range range_;
};

double across(int64_t step, const LossCurve& curve) {
  return static_cast<double>(step) /
         static_cast<double>(std::max<size_t>(curve.losses.size(), 1));
}

struct Frame {  // where a value is in the picture
  Range range;
  double x(double share) const { return kLeft + kWidth * share; }
  double y(double bits) const { return kTop + kHeight * (1 - range.share(bits)); }
};

void draw_grid(Svg& out, const Frame& frame, size_t steps) {
  for (double bits = frame.range.low; bits <= frame.range.high; bits++) {
    out.line(kLeft, frame.y(bits), kLeft + kWidth, frame.y(bits), "grid");
    out.text(kLeft - 8, frame.y(bits) + 4, one_digit(bits), "dim small", "end");
  }
  for (int k = 0; k <= 4; k++) {
    const double x = frame.x(k / 4.0);
    out.line(x, kTop, x, kTop + kHeight, "grid");
    out.text(x, kTop + kHeight + 18, std::to_string(steps * static_cast<size_t>(k) / 4),
             "dim small", "middle");
  }
  out.text(kLeft + kWidth + 12, kTop + kHeight + 18, "steps", "dim small");
}

std::string path_of(const std::vector<double>& bits, const Frame& frame) {
  std::string d;
  for (size_t k = 0; k < bits.size(); k++) {
    const double share = (static_cast<double>(k) + 0.5) / static_cast<double>(bits.size());
    d += str(k == 0 ? "M" : " L", std::llround(frame.x(share)), " ",
             std::llround(frame.y(bits[k])));
  }
  return d;
}

}  // namespace

std::string curve_text(const LossCurve& curve, int columns, int rows) {
  const std::vector<double> bits = means(curve.losses, static_cast<size_t>(columns));
  Canvas canvas(columns, rows, range_of(bits, curve));
  for (int k = 0; k < columns && curve.five_gram > 0; k++)
    canvas.put(k / (columns - 1.0), curve.five_gram, '-');
  for (size_t k = 0; k < bits.size(); k++)
    canvas.put((static_cast<double>(k) + 0.5) / static_cast<double>(bits.size()), bits[k], '*');
  for (const auto& [step, held] : curve.held) canvas.put(across(step, curve), held, 'o');
  std::string told = "       * training";
  if (!curve.held.empty()) told += "   o held out " + two_digits(curve.held.back().second);
  if (curve.five_gram > 0) told += "   - 5-gram " + two_digits(curve.five_gram);
  return canvas.text(static_cast<int64_t>(curve.losses.size())) + told + "\n";
}

std::string curve_svg(const LossCurve& curve) {
  const std::vector<double> bits = means(curve.losses, 160);
  const Frame frame{range_of(bits, curve)};
  Svg out;
  out.text(16, 28, "Bits a byte", "title");
  out.text(16, 46, "line: training, means of neighbouring steps; dots: held-out text",
           "dim small");
  draw_grid(out, frame, curve.losses.size());
  if (curve.five_gram > 0) {
    const double y = frame.y(curve.five_gram);
    out.line(kLeft, y, kLeft + kWidth, y, "refused");
    out.text(kLeft + kWidth + 12, y + 4, "5-gram " + two_digits(curve.five_gram),
             "reason small");
  }
  if (!bits.empty()) out.path(path_of(bits, frame), "arrow");
  for (const auto& [step, held] : curve.held)
    out.circle(frame.x(across(step, curve)), frame.y(held), 4, "dot");
  if (!curve.held.empty()) {
    const double held = curve.held.back().second, y = frame.y(held);
    const bool is_close = curve.five_gram > 0 && std::abs(y - frame.y(curve.five_gram)) < 14;
    out.text(kLeft + kWidth + 12, y + (is_close ? 18 : 4), "held out " + two_digits(held),
             "small");
  }
  return out.str(kLeft + kWidth + kRight, kTop + kHeight + 36, "Loss of a training");
}

}  // namespace tiny_compile
