// Arrays that are read again rather than written, and what gradients move because of it.
#include "tiny_compile/loops/read_again.h"

#include "tests/catch.h"
#include "tests/fuzz/random_graph.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/tiny_compile.h"

namespace {

using namespace tiny_compile;
using In = std::span<const Tensor>;
using Out = std::vector<Tensor>;

// The second kernel's steps are `reader`.
Program two_kernels(const std::string& role, const std::string& reader) {
  return parse_program("program f {\n input x: f32[3,1000]\n input s: f32[3]\n " + role +
                       " t: f32[3,1000]\n" +
                       R"(output y: f32[3,1000]
    output z: f32[3]
    output w: f32[3]
    kernel rows_1 rows(i0: 3) {
      $0 = load x[i0*1000 + j0]
      r0: f32 = sum(j0: 1000) exp($0)
      store t[i0*1000 + j0] for (j0: 1000) = sub($0, log(r0))
      store z[i0] = r0
    }
    kernel mul_2 rows(i0: 3) {
      )" + reader + R"(
      store y[i0*1000 + j0] for (j0: 1000) = mul(load t[i0*1000 + j0], load s[i0])
    }
    launch rows_1
    launch mul_2
    return y, z, w)" + (role == "output" ? ", t\n}" : "\n}"));
}

const std::string kEachOnce = "store w[i0] = load s[i0]";
const std::string kReduces = R"(r0: f32 = sum(j0: 1000) load t[i0*1000 + j0]
      store w[i0] = r0)";

struct Moved {
  size_t launches;
  double megabytes;
};

// After its bits were compared with the graph's.
Moved moved(const std::function<Out(In)>& function, const Out& inputs, Target target) {
  const Graph graph = trace(function, inputs, "f").graph;
  const Program program = run_pipeline(default_pipeline(), graph, true, target).program;
  const Out wanted = interpret(graph, inputs), got = interpret(program, inputs);
  for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(wanted[k], got[k]));
  return {program.launches.size(), static_cast<double>(bytes_moved(program)) * 1e-6};
}

Out cross_entropy_gradient(In x) {
  const auto loss = [&](const Tensor& logits) { return cross_entropy(logits, x[1]); };
  const auto [value, gradient] = value_and_grad(loss)(x[0]);
  return {value, gradient};
}

Out layer_norm_gradient(In x) {
  const auto loss = [&](const Tensor& a, const Tensor& w, const Tensor& b) {
    return (layer_norm(a, {1024}, w, b) * x[3]).sum();
  };
  const auto all = [&](const Out& p) { return loss(p[0], p[1], p[2]); };
  return grad(all)(Out{x[0], x[1], x[2]});
}

Out rms_norm_gradient(In x) {
  const auto loss = [&](const Out& p) { return (rms_norm(p[0], {1024}, p[1]) * x[2]).sum(); };
  return grad(loss)(Out{x[0], x[1]});
}

}  // namespace

TEST_CASE("one value a row stands for an array that can be read again", "[read_again]") {
  const Program before = two_kernels("temp", kEachOnce), after = read_again(before);
  REQUIRE_NOTHROW(verify(after));
  INFO(print(after));
  CHECK(bytes_moved(before) - bytes_moved(after) == 4 * (3000 - 2 * 3));
  const Out inputs = {randn({3, 1000}), randn({3})};
  const Out wanted = interpret(before, inputs), got = interpret(after, inputs);
  for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(wanted[k], got[k]));
  CHECK(read_again(after) == after);
}

TEST_CASE("an array that is returned, or read more than once, is written", "[read_again]") {
  for (const auto& [role, reader] : {std::pair("output", kEachOnce), {"temp", kReduces}}) {
    const Program program = two_kernels(role, reader);
    CHECK(read_again(program) == program);
  }
}

TEST_CASE("a cross entropy and its gradient read the logits once and write once",
          "[read_again][gradients]") {
  const Out inputs = {randn({64, 5000}), zeros({64}, DType::i64)};
  const double logits = 64 * 5000 * 4e-6;
  for (const Target target : {Target::Cpp, Target::Cuda}) {
    const Moved all = moved(cross_entropy_gradient, inputs, target);
    CHECK(all.launches <= 3);
    CHECK(all.megabytes < 2.02 * logits);
  }
}

TEST_CASE("a gradient that is padded for a product is computed where it is padded",
          "[read_again][gradients]") {
  const auto padded = [](In x) { return Out{pad(cross_entropy_gradient(x)[1], {0, 7})}; };
  const Out inputs = {randn({64, 5001}).to(DType::bf16), zeros({64}, DType::i64)};
  const double logits = 64 * 5001 * 2e-6;
  for (const Target target : {Target::Cpp, Target::Cuda})
    CHECK(moved(padded, inputs, target).megabytes < 3.05 * logits);
}

TEST_CASE("a norm's gradients read x and dy once, in two launches", "[read_again][gradients]") {
  const Out inputs = {randn({4096, 1024}), randn({1024}), randn({1024}), randn({4096, 1024})};
  const double once = 4096 * 1024 * 4e-6;
  const Moved layer = moved(layer_norm_gradient, inputs, Target::Cuda);
  CHECK(layer.launches <= 2);
  CHECK(layer.megabytes < 3.15 * once);
  const Moved rms = moved(rms_norm_gradient, {inputs[0], inputs[1], inputs[3]}, Target::Cuda);
  CHECK(rms.launches <= 2);
  CHECK(rms.megabytes < 3.15 * once);
}

TEST_CASE("a sum over all reads the logits again, and the values of each row", "[read_again]") {
  const auto smoothed = [](In x) {
    const Tensor logs = log_softmax(x[0].to(DType::f32), 1);
    return Out{logs.sum() * -0.1 - gather(logs, 1, x[1]).sum()};
  };
  const double logits = 96 * 8200 * 2e-6;
  for (const int64_t length : {8200, 8193}) {  // whole accesses; rows that begin anywhere
    const Out inputs = {randn({96, length}).to(DType::bf16), zeros({96, 1}, DType::i64)};
    CHECK(moved(smoothed, inputs, Target::Cuda).megabytes < 2.05 * logits);
  }
  const Out few = {randn({20, 20011}), zeros({20, 1}, DType::i64)};  // the sums of rows before
  CHECK(moved(smoothed, few, Target::Cuda).megabytes < 2.05 * 20 * 20011 * 4e-6);
  const Out of_short = {randn({9600, 49}).to(DType::bf16), zeros({9600, 1}, DType::i64)};
  CHECK(moved(smoothed, of_short, Target::Cuda).megabytes > 4 * 9600 * 49 * 2e-6);
}

TEST_CASE("a GPU divides for the row of an element where it would wait for memory",
          "[read_again]") {
  const auto of = [](int64_t rows, Target target) {
    const std::string all = str("f32[", rows, ",1001]"), one = str("f32[", rows, ",1]");
    const Graph graph = parse_graph(
        str("graph f(%0 x: ", all, ") {\n  %1: ", one,
            " = sum %0 {axes=[1], keepdim=1}\n  %2: ", all, " = expand %1\n  %3: ", all,
            " = sub %0, %2\n  %4: f32[] = sum %3 {axes=[0,1]}\n", "  return %1, %4\n}\n"));
    const Program program = run_pipeline(default_pipeline(), graph, true, target).program;
    return static_cast<double>(bytes_moved(program)) / (1001.0 * 4 * static_cast<double>(rows));
  };
  CHECK(of(65536, Target::Cuda) < 2.05);
  CHECK(of(65536, Target::Cpp) > 2.9);  // x, t; t
  CHECK(of(2048, Target::Cuda) > 2.9);  // from a cache it does not wait
}

TEST_CASE("what many were to read goes where few are left, if that is less to read",
          "[read_again]") {
  const auto variance = [](In x) { return Out{(x[0] * x[1]).var({0})}; };
  const Out inputs = {randn({1500, 64}), randn({1500, 64})};
  const double one = 1500 * 64 * 4e-6;
  for (const Target target : {Target::Cpp, Target::Cuda}) {
    const Moved all = moved(variance, inputs, target);
    CHECK(all.launches == 1);
    CHECK(all.megabytes < 2.05 * one);  // x and y, each once in memory
  }
}

TEST_CASE("exponentials are computed again down long columns, where that moves less",
          "[read_again]") {
  const auto softmax_down = [](In x) { return Out{softmax(x[0], 0)}; };
  const double one = 3000 * 64 * 4e-6;
  const Out inputs = {randn({3000, 64})};
  CHECK(moved(softmax_down, inputs, Target::Cuda).megabytes < 4.1 * one);  // x, x, x; y
}

TEST_CASE("work on a vector is not done again for each row that reads it", "[read_again]") {
  const auto gated = [](In x) {
    const Tensor gate = sigmoid(x[1]);
    return Out{clamp(x[0] * gate, -1.0, 1.0) * gate + gate, gate.sum()};
  };
  const Out inputs = {randn({300, 640}), randn({640})};
  const Graph graph = trace(gated, inputs, "f").graph;
  for (const Target target : {Target::Cpp, Target::Cuda}) {
    const Program program = run_pipeline(default_pipeline(), graph, true, target).program;
    CHECK(read_again(program) == program);
  }
}

TEST_CASE("what has a schedule keeps what it reads and writes", "[read_again]") {
  Program program = two_kernels("temp", kEachOnce);
  REQUIRE_FALSE(read_again(program) == program);
  program.kernels[1].schedule = Schedule{};
  CHECK(read_again(program) == program);
}

TEST_CASE("a value is not taken from a buffer that a scatter changes", "[read_again]") {
  const auto of = [](const std::string& scatter) {
    return parse_program(R"(program f {
    input x: f32[3,1000]
    input k: i64[8]
    input u: f32[3,8]
    output a: f32[3,1000]
    temp t: f32[3,1000]
    output y: f32[1000,3]
    kernel one rows(i0: 3) {
      r0: f32 = sum(j0: 1000) load x[i0*1000 + j0]
      $1 = exp(sub(load x[i0*1000 + j0], r0))
      store a[i0*1000 + j0] for (j0: 1000) = $1
      store t[i0*1000 + j0] for (j0: 1000) = neg($1)
    )" + scatter + R"(}
    kernel two rows(i0: 1000, i1: 3) {
      store y[i0*3 + i1] = mul(load t[i1*1000 + i0], load x[i1*1000 + i0])
    }
    launch one
    launch two
    return a, y
  })");
  };
  const Out inputs = {randn({3, 1000}), zeros({8}, DType::i64), randn({3, 8})};
  for (const char* scatter : {"",
                              "scatter a[i0*1000 + at0; at0 = load k[j1] < 1000] for (j1: 8) = "
                              "scatter_add load u[i0*8 + j1]\n"}) {
    const Program before = of(scatter), after = read_again(before);
    INFO(print(after));
    CHECK((print(after).find("load a[") == std::string::npos) == (std::string(scatter) != ""));
    const Out wanted = interpret(before, inputs), got = interpret(after, inputs);
    for (size_t k = 0; k < wanted.size(); k++) CHECK(same_bits(wanted[k], got[k]));
  }
}

TEST_CASE("beside a stored value, what little is made of it is not stored as well",
          "[read_again]") {
  // t and t - 1, for a kernel that goes the other way and reads both.
  const Program before = parse_program(R"(program f {
    input x: f32[30,1001]
    input at: i64[30]
    output t: f32[30,1001]
    temp u: f32[30,1001]
    output y: f32[30,1001]
    kernel both rows(i0: 30) {
      $0 = exp(load x[i0*1001 + j0])
      store t[i0*1001 + j0] for (j0: 1001) = $0
      store u[i0*1001 + j0] for (j0: 1001) = sub($0, f32 1.0)
    }
    kernel choose rows(i0: 30) {
      $1 = eq(index[j0], load at[i0])
      store y[i0*1001 + j0] for (j0: 1001) = where($1, load u[i0*1001 + j0], load t[i0*1001 + j0])
    }
    launch both
    launch choose
    return y, t
  })");
  const Program after = read_again(before);
  INFO(print(after));
  REQUIRE_NOTHROW(verify(after));
  CHECK(bytes_moved(before) - bytes_moved(after) == 2 * 4 * 30 * 1001);
  const Out inputs = {randn({30, 1001}), zeros({30}, DType::i64)};
  CHECK(same_bits(interpret(before, inputs)[0], interpret(after, inputs)[0]));
}

TEST_CASE("sums of columns that read the same arrays again are one kernel", "[read_again]") {
  const Out inputs = {randn({300, 4096}), randn({4096}), randn({4096}), randn({300, 4096})};
  const auto of_rows = [](In x) {
    const auto loss = [&](const Tensor& a, const Tensor& w, const Tensor& b) {
      return (layer_norm(a, {4096}, w, b) * x[3]).sum();
    };
    return grad([&](const Out& p) { return loss(p[0], p[1], p[2]); })(Out{x[0], x[1], x[2]});
  };
  const Moved all = moved(of_rows, inputs, Target::Cuda);
  CHECK(all.launches == 2);
  CHECK(all.megabytes < 5.15 * 300 * 4096 * 4e-6);  // x, dy, dx; x, dy
}

TEST_CASE("sums over many rows of several axes read them again, in one pass", "[read_again]") {
  const auto gradients = [](In x) {
    const auto loss = [&](const Tensor& a, const Tensor& w, const Tensor& b) {
      return (layer_norm(a, {48}, w, b) * x[3]).sum();
    };
    return grad([&](const Out& p) { return loss(p[0], p[1], p[2]); })(Out{x[0], x[1], x[2]});
  };
  const Out inputs = {randn({60, 8, 49, 48}), randn({48}), randn({48}), randn({60, 8, 49, 48})};
  const Moved all = moved(gradients, inputs, Target::Cuda);
  CHECK(all.launches == 3);                              // rows; chunks of columns, their sums
  CHECK(all.megabytes < 5.2 * 60 * 8 * 49 * 48 * 4e-6);  // x, dy, dx; x, dy
  const auto transposed =
      [&](In x) {  // where that would go across memory the array is worth its bytes
        return gradients(Out{x[0].transpose(0, 1), x[1], x[2], x[3]});
      };
  CHECK(moved(transposed, {randn({48, 20000}), inputs[1], inputs[2], randn({20000, 48})},
              Target::Cuda)
            .megabytes > 5.9 * 20000 * 48 * 4e-6);
}

TEST_CASE("a picture is a row, however many axes it has", "[read_again]") {
  const auto gradients = [](In x) {
    const auto loss = [&](const Tensor& a, const Tensor& w) {
      const Tensor wide = a.to(DType::f32), centred = wide - wide.mean({2, 3}, true);
      const Tensor normal = centred * rsqrt((centred * centred).mean({2, 3}, true) + 1e-5);
      return (normal * w * x[2].to(DType::f32)).sum();
    };
    return grad([&](const Out& p) { return loss(p[0], p[1]); })(Out{x[0], x[1]});
  };
  const Out inputs = {randn({64, 32, 12, 12}).to(DType::bf16), randn({32, 1, 1}),
                      randn({64, 32, 12, 12}).to(DType::bf16)};
  CHECK(moved(gradients, inputs, Target::Cuda).megabytes <
        5.3 * 64 * 32 * 144 * 2e-6);  // x, dy, dx; x, dy
}

TEST_CASE("the least and the largest of long columns are one kernel that many rows share",
          "[fuse]") {
  const auto both = [](In x) { return Out{x[0].min(0), x[0].max(0)}; };
  const Moved all = moved(both, {randn({20000, 512})}, Target::Cuda);
  CHECK(all.launches == 2);  // chunks, and what they gave
  CHECK(all.megabytes < 1.1 * 20000 * 512 * 4e-6);
}

TEST_CASE("what is picked of each row has a gradient without an array of zeros",
          "[read_again][gradients]") {
  const auto gradient = [](In x) {
    const auto loss = [&](const Tensor& a) { return (gather(exp(a), 1, x[1]) * x[2]).sum(); };
    return Out{grad(loss)(x[0])};
  };
  const Out inputs = {randn({64, 5000}), full({64, 1}, 7.0).to(DType::i64), randn({64, 1})};
  for (const Target target : {Target::Cpp, Target::Cuda}) {
    const Moved all = moved(gradient, inputs, target);
    CHECK(all.launches <= 3);
    CHECK(all.megabytes < 2.1 * 64 * 5000 * 4e-6);
  }
}

TEST_CASE("a cast of rows that lie apart is made again, not written", "[inline]") {
  const auto standardised = [](In x) {
    const Tensor wide = x[0].slice(1, 0, 700).to(DType::f32);
    return Out{(wide - wide.mean({0}, true)).to(DType::bf16)};
  };
  const Out inputs = {randn({9001, 2100}).to(DType::bf16)};
  const Moved all = moved(standardised, inputs, Target::Cuda);
  CHECK(all.megabytes < 3.1 * 9001 * 700 * 2e-6);  // read twice, and one result
}

TEST_CASE("results and gradients of the same rows are one kernel", "[read_again][gradients]") {
  const Out inputs = {randn({512, 768}), randn({512, 768})};
  const auto with_gradient = [](const std::function<Tensor(const Tensor&)>& f) {
    return [f](In x) {
      const auto weighed = [&](const Tensor& y) { return (f(y) * x[1]).sum(); };
      return Out{f(x[0]), grad(weighed)(x[0])};
    };
  };
  for (const auto& f : {std::function([](const Tensor& x) { return softmax(x, 1); }),
                        std::function([](const Tensor& x) { return gelu(x); })}) {
    const Moved both = moved(with_gradient(f), inputs, Target::Cuda);
    CHECK(both.launches == 1);
    CHECK(both.megabytes < 4.01 * 512 * 768 * 4e-6);
  }
}

TEST_CASE("a loss of all elements and its gradient read once, chunk by chunk",
          "[read_again][gradients]") {
  const Out inputs = {randn({1024, 512}), randn({1024, 512})};
  const auto loss = [](In x) {
    const auto error = [&](const Tensor& y) { return mse_loss(y, x[1]); };
    const auto [value, gradient] = value_and_grad(error)(x[0]);
    return Out{value, gradient};
  };
  const Moved both = moved(loss, inputs, Target::Cuda);
  CHECK(both.launches == 2);
  CHECK(both.megabytes < 3.01 * 1024 * 512 * 4e-6);
}
