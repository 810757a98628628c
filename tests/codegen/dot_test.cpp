// Any dot, whatever its axes, in tiles: its bits are the interpreter's.
#include <random>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/codegen/cpp.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/runtime/build.h"
#include "tiny_compile/schedule/policy.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;

namespace {

// Writes programs of one dot: axes of one operand, the other or both in any order, strides that
// overlap (windows), axes that an index divides, loads under masks, sums that are stored twice.
class RandomDot {
 public:
  RandomDot(unsigned seed, const char* dtype) : random_(seed), dtype_(dtype) {}

  std::string text() {
    std::string rows, inner;
    const int count = 1 + below(5), depth = 1 + below(3);
    int64_t points = 1;
    for (int a = 0; a < count; a++) points *= add("i", a, points > 400 ? 3 : 40, rows);
    for (int a = 0; a < depth; a++) add("j", a, a == 0 && points < 100 ? 1001 : 9, inner);
    const std::string left = load("x", 1), right = load("w", 2), store = index(7, true);
    return str("program p {\n  input x: ", dtype_, "[", sizes_[0], "]\n  input w: ", dtype_,
               "[", sizes_[1], "]\n  output y: ", dtype_, "[", sizes_[2],
               "]\n  output z: ", dtype_, "[", sizes_[2], "]\n  kernel dot_0 rows(", rows,
               ") {\n    r0: ", dtype_, " = dot(", inner, ") ", left, ", ", right,
               "\n    store y[", store, "] = r0\n    store z[", store,
               "] = neg(r0)\n  }\n  launch dot_0\n", "  return y, z\n}\n");
  }

 private:
  struct Axis {
    std::string name;
    int64_t extent;
    int users;  // bit 1: x, bit 2: w, bit 4: the store
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  int64_t add(const char* letter, int number, int64_t most, std::string& list) {
    constexpr int64_t kExtents[] = {1, 2, 3, 4, 7, 8, 12, 17, 33, 1001};
    int64_t extent = most;
    while (extent >= most) extent = kExtents[below(most > 1000 ? 10 : 9)];
    const bool row = letter[0] == 'i';
    const int users = row ? 4 + (below(6) == 0 ? 3 : 1 + below(2)) : 3;
    axes_.push_back({str(letter, number), extent, users});
    list += str(list.empty() ? "" : ", ", letter, number, ": ", extent);
    return extent;
  }

  // A sum over the axes of a user in any order; dense: each point another element.
  std::string index(int users, bool dense) {
    std::vector<Axis> used;
    for (const Axis& axis : axes_) {
      if (axis.users & users & (dense ? 4 : 3)) used.push_back(axis);
    }
    std::shuffle(used.begin(), used.end(), random_);
    std::string text;
    int64_t stride = 1, last = 0;
    for (const Axis& axis : used) {
      const bool window = !dense && below(4) == 0, cut = !dense && axis.extent % 4 == 0;
      const int64_t step = window ? 1 + below(3) : stride;
      text += text.empty() ? "" : " + ";
      if (cut && below(2)) {
        text += str("(", axis.name, "/4)*", 5 * step, " + (", axis.name, "%4)*", step);
        last += (axis.extent / 4 - 1) * 5 * step + 3 * step;
      } else {
        text += str(axis.name, "*", step);
        last += (axis.extent - 1) * step;
      }
      stride = last + 1;
    }
    sizes_.push_back(last + 1);
    return text.empty() ? "0" : text;
  }

  std::string load(const char* buffer, int user) {
    const std::string place = index(user, false);
    if (below(3)) return str("load ", buffer, "[", place, "]");
    return str("load ", buffer, "[", place, "] if lt(index[", axes_[0].name, "], i64 ",
               axes_[0].extent / 2 + 1, ") else 0", is_float_ ? ".0" : "");
  }

  std::mt19937 random_;
  std::string dtype_;
  bool is_float_ = dtype_[0] == 'f' || dtype_[0] == 'b';
  std::vector<Axis> axes_;
  std::vector<int64_t> sizes_;
};

std::vector<Tensor> inputs_of(const Program& program) {
  std::vector<Tensor> inputs;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.role != Role::Input) continue;
    const Tensor drawn = randn({buffer.size.constant()});
    inputs.push_back(is_float(buffer.type.dtype) ? drawn.to(buffer.type.dtype)
                                                 : (drawn * 50.0).to(buffer.type.dtype));
  }
  return inputs;
}

}  // namespace

TEST_CASE("dots of any axes, strides, windows, masks and dtypes run in tiles, to the bit",
          "[matmul]") {
  const tests::Scratch scratch;
  const tests::Setting cache("TC_CACHE_DIR", scratch.path("cache"));
  std::vector<Program> plain, scheduled;
  std::vector<std::string> texts;
  int tiled = 0;
  for (unsigned seed = 0; seed < 48; seed++) {
    constexpr const char* kDTypes[] = {"f32", "f32", "f64", "bf16", "i32", "f16", "i8", "i64"};
    texts.push_back(RandomDot(seed, kDTypes[seed % 8]).text());
    INFO(texts.back());
    plain.push_back(parse_program(texts.back()));
    scheduled.push_back(plan_memory(schedule(plain.back())));
    tiled += scheduled.back().kernels[0].schedule->strategy == Strategy::Tiles;
  }
  CHECK(tiled > 20);  // the others are of few terms, or of few results
  const std::vector<Source> sources = emit_cpp_together(lower_all_to_tiles(scheduled));
  for (size_t p = 0; p < plain.size(); p++) {
    INFO(texts[p]);
    const std::vector<Tensor> inputs = inputs_of(plain[p]);
    const std::vector<Tensor> wanted = interpret(plain[p], inputs),
                              got = build(scheduled[p], sources[p]).run(inputs);
    for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(wanted[k], got[k]));
  }
}

TEST_CASE("heads apart and the gradient of a convolution are products like any other",
          "[matmul]") {
  const auto strategy = [](const std::string& dot) {
    return schedule(parse_program(str("program p {\n  input x: f32[40000]\n  input w: ",
                                      "f32[40000]\n  output y: f32[2304]\n  kernel k_0 ", dot,
                                      "\n  }\n  launch k_0\n  return y\n}\n")))
        .kernels[0]
        .schedule->strategy;
  };
  CHECK(strategy("rows(i0: 16, i1: 4, i2: 36) {\n    r0: f32 = dot(j0: 64) load x[i0*64 + j0], "
                 "load w[i1*2304 + i2*64 + j0]\n    store y[i0*36 + i1*576 + i2] = r0") ==
        Strategy::Tiles);
  CHECK(strategy("rows(i0: 16, i1: 16, i2: 3, i3: 3) {\n    r0: f32 = dot(j0: 8, j1: 8) load "
                 "x[i0*64 + j0*8 + j1], load w[i1*100 + i2*10 + i3 + j0*10 + j1]\n    "
                 "store y[i0*144 + i1*9 + i2*3 + i3] = r0") == Strategy::Tiles);
}
