// How is a transposed operand read at memory speed? Along one axis each cache line serves one
// element, so a square of 128 x 128 is read along the other, turned in registers into L2, and
// used from there: every line is fetched once.
//
//   out[i0*4096 + i1] = x[i1*4096 + i0] + y[i0*4096 + i1]
// =>
//   for each square: tc_turn(x + .., 4096, turned_0, ..);
//     for (i0 ..) for (i1 ..)
//       out[..] = turned_0[(i0 - first_row)*128 + i1 - first_column] + y[..]
#include "tiny_compile/codegen/cpp_turned.h"

#include <algorithm>
#include <cstdint>

#include "tiny_compile/codegen/cpp_store.h"
#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/turned_loads.h"

namespace tiny_compile {
namespace {

// Sixteen vectors of sixteen become their transpose in four steps, each of which swaps the
// blocks off the diagonal.
constexpr const char* kTurn = R"(
#if defined(__AVX512F__)
typedef float tc_lanes __attribute__((vector_size(64), aligned(4), may_alias));

template <int step, int... lane>
TC_FN void tc_swap_blocks(tc_lanes& a, tc_lanes& b) {
  const tc_lanes upper = __builtin_shufflevector(a, b, (lane & step ? 16 + lane - step : lane)...);
  b = __builtin_shufflevector(a, b, (lane & step ? 16 + lane : lane + step)...);
  a = upper;
}

template <int step>
TC_FN void tc_turn_step(tc_lanes* square) {
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++)
    if (!(i & step))
      tc_swap_blocks<step, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>(
          square[i], square[i + step]);
}

static inline void tc_turn_16(const float* from, long long stride, float* to) {
  tc_lanes square[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) {
    square[i] = *(const tc_lanes*)(from + i * stride);
    __builtin_prefetch(from + i * stride + SIDE);  // the next square's
  }
  tc_turn_step<8>(square);
  tc_turn_step<4>(square);
  tc_turn_step<2>(square);
  tc_turn_step<1>(square);
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) *(tc_lanes*)(to + i * SIDE) = square[i];
}
#endif

// to[r*SIDE + c] = from[c*stride + r]
template <typename T>
static inline void tc_turn(const T* from, long long stride, T* to, long long rows,
                           long long columns) {
  for (long long r = 0; r < rows; r += 16) {
    for (long long c = 0; c < columns; c += 16) {
#if defined(__AVX512F__)
      if (sizeof(T) == 4 && rows - r >= 16 && columns - c >= 16) {
        tc_turn_16((const float*)from + c * stride + r, stride, (float*)to + r * SIDE + c);
        continue;
      }
#endif
      for (long long l = c; l < c + 16 && l < columns; l++)
        for (long long k = r; k < r + 16 && k < rows; k++) to[k * SIDE + l] = from[l * stride + k];
    }
  }
}
)";

class TurnedWriter {
 public:
  TurnedWriter(KernelText& text, const std::vector<int>& loads)
      : text_(text), out_(text.out), kernel_(text.kernel), loads_(loads) {
    across_ = kernel_.rows - 1;
    along_ = turned_axis(kernel_, kernel_.scalars[loads[0]]);
    for (const Step& step : kernel_.steps) steps_.push_back(&step);
    ids_ = text.needed(steps_);
    defined_.assign(kernel_.scalars.size(), false);
  }

  Expr write() {
    text_.define(ids_, {0, false}, defined_);
    out_.open("for (long long unit = begin; unit < end; unit++)");
    const Expr units = write_place();
    for (int id : loads_) write_turn(id);
    text_.scalars.element = [this](int id) { return element(id); };
    out_.open(str("for (long long ", row().name, " = first_row; ", row().name, " < stop_row; ",
                  row().name, "++)"));
    const uint64_t all = row_mask(kernel_);
    text_.define(ids_, {all & ~(uint64_t{1} << across_), false}, defined_);
    write_store_loop(text_, across_, "first_column", "stop_column", steps_, [&] {
      text_.define(ids_, {all, true}, defined_);
    });
    out_.close();
    out_.close();
    return units;
  }

 private:
  const Axis& row() const { return kernel_.axes[along_]; }
  const Axis& column() const { return kernel_.axes[across_]; }

  // Where the unit's square lies; squares that share their lines come one after another.
  Expr write_place() {
    std::vector<int> order = {along_};
    for (int axis = kernel_.rows; axis-- > 0;) {
      if (axis != along_) order.push_back(axis);
    }
    Expr units = 1;
    for (int axis : order) units = units * places(axis);
    const int64_t most = units.bounds().high;
    Expr rest = Expr::symbol(tile_symbol("unit"), 0, std::max<int64_t>(most - 1, 0));
    uint64_t outer = 0;
    for (int axis : order) {
      const Expr here = axis == order.back() ? rest : mod(rest, places(axis));
      rest = floor_div(rest, places(axis));
      if (axis == along_) write_range("row", here, row());
      if (axis == across_) write_range("column", here, column());
      if (axis == along_ || axis == across_) continue;
      text_.declare(kernel_.axes[axis].name, here);
      outer |= uint64_t{1} << axis;
    }
    text_.define(ids_, {outer, false}, defined_);
    return units;
  }

  Expr places(int axis) const {
    const Expr& extent = kernel_.axes[axis].extent;
    return axis == along_ || axis == across_ ? ceil_div(extent, kSquare) : extent;
  }

  void write_range(const std::string& what, const Expr& here, const Axis& axis) {
    text_.declare("first_" + what, here * kSquare);
    const std::string extent = c_operand(axis.extent);
    out_.line(str("const long long stop_", what, " = ", extent, " - first_", what, " < ",
                  kSquare, " ? ", extent, " : first_", what, " + ", kSquare, ";"));
  }

  void write_turn(int id) {
    const Scalar& load = kernel_.scalars[id];
    const Expr corner = substitute(
        load.index, {{row().name, Expr::symbol(tile_symbol("first_row"), 0, INT64_MAX)},
                     {column().name, Expr::symbol(tile_symbol("first_column"), 0, INT64_MAX)}});
    const bool is_bool = load.dtype == DType::boolean;  // a byte, as the buffer's are
    out_.line(str("alignas(64) ", is_bool ? "unsigned char" : c_type(load.dtype), " turned_",
                  id, "[", kSquare * kSquare, "];"));
    out_.line(str(text_.calls("tc_turn"), "(", pointer_name(text_.program.buffers[load.buffer]),
                  " + ", c_text(corner), ", ", c_text(stride_of(load.index, column())),
                  ", turned_", id, ", stop_row - first_row, stop_column - first_column);"));
  }

  std::string element(int id) const {
    if (std::find(loads_.begin(), loads_.end(), id) == loads_.end()) return "";
    return str("turned_", id, "[(", row().name, " - first_row)*", kSquare, " + ", column().name,
               " - first_column]");
  }

  KernelText& text_;
  Text& out_;
  const Kernel& kernel_;
  const std::vector<int>& loads_;
  int across_, along_;
  std::vector<const Step*> steps_;
  std::vector<int> ids_;
  std::vector<bool> defined_;
};

}  // namespace

Expr write_turned(KernelText& text, const std::vector<int>& loads) {
  return TurnedWriter(text, loads).write();
}

std::string turned_helpers(const Calls& calls) {
  if (!calls.has("tc_turn")) return "";
  std::string text = kTurn;
  for (size_t at = 0; (at = text.find("SIDE", at)) != std::string::npos;)
    text.replace(at, 4, std::to_string(kSquare));
  return text;
}

}  // namespace tiny_compile
