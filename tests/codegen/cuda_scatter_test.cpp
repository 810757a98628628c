// Scatters whose blocks own parts of the result: the interpreter's bits, thread by thread, the
// error of an index out of range, and which kernels are of this family.
#include "tests/codegen/cuda_threads.h"
#include "tiny_compile/runtime/nvrtc.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kFamily = "counts[warp] = ";

Tensor numbers(const std::vector<int64_t>& values) { return from_vector(values); }

// What each index is, of so many.
using Pattern = std::function<int64_t(int64_t)>;

Tensor index_of(int64_t count, const Pattern& pattern) {
  std::vector<int64_t> values;
  for (int64_t k = 0; k < count; k++) values.push_back(pattern(k));
  return numbers(values);
}

Pattern random_below(int64_t targets) {
  return [targets](int64_t k) { return (k * 2654435761 % 1000003) % targets; };
}

// base[index[k], :] += updates[k, :]
Out into_rows(In i) {
  const Tensor places = expand(i[1].unsqueeze(1), {i[1].size(0), i[0].size(1)});
  return {scatter_add(i[0], 0, places, i[2])};
}

Out counted(In i) { return {scatter_add(i[0], 0, i[1], i[2])}; }

void check_scatter(const Function& function, const std::vector<Tensor>& inputs) {
  CHECK_THAT(check_bits(function, inputs).source.text, ContainsSubstring(kFamily));
}

void check_rows(int64_t targets, int64_t columns, const Tensor& index, DType type = float32) {
  CAPTURE(targets, columns, index.size(0));
  check_scatter(into_rows, {(randn({targets, columns}) * 8).to(type), index,
                            (randn({index.size(0), columns}) * 8).to(type)});
}

std::string text_of(const Function& function, const std::vector<Tensor>& inputs) {
  const Graph graph = trace(function, inputs, "f").graph;
  return run_pipeline(default_pipeline(), graph, true, Target::Cuda).source.text;
}

// The result, and the errors that were raised.
std::pair<Tensor, unsigned> with_errors(const Function& function,
                                        const std::vector<Tensor>& inputs,
                                        const char* family = kFamily) {
  const Graph graph = trace(function, inputs, "f").graph;
  const Staged all = run_pipeline(default_pipeline(), graph, true, Target::Cuda);
  CHECK_THAT(all.source.text, ContainsSubstring(family));
  std::string text = for_cpu(all.source);
  const std::string silent = "#define TC_FAIL(code)\n";
  text.replace(text.find(silent), silent.size(),
               "extern \"C\" {\nunsigned tc_error_word = 0;\n}\n"
               "#define TC_FAIL(code) (tc_error_word |= code)\n");
  Threads threads(text, names_of(all.source));
  const Tensor result = run_on(threads, all.program, all.source, inputs)[0];
  return {result, *static_cast<unsigned*>(threads.symbol("tc_error_word"))};
}

}  // namespace

TEST_CASE("rows are scattered to, of every type", "[codegen][threads]") {
  manual_seed(11);
  for (DType type : {float32, float64, bfloat16, float16, int32, int8})
    check_rows(50, 24, index_of(300, random_below(50)), type);
}

TEST_CASE("ragged scatters: few and many updates, columns and targets", "[codegen][threads]") {
  manual_seed(12);
  for (int64_t updates : {1, 7, 1001}) {
    for (int64_t columns : {1, 7, 768})
      check_rows(updates == 7 ? 1000 : 13, columns,
                 index_of(updates, random_below(updates == 7 ? 1000 : 13)));
  }
  check_rows(2, 3000, index_of(9, random_below(2)), bfloat16);  // a target of several blocks
  check_rows(40000, 1, index_of(300, random_below(40000)));     // a block of many targets
  check_rows(5000, 3, index_of(2100, random_below(5000)), float16);
}

TEST_CASE("more updates than a block's list holds", "[codegen][threads]") {
  manual_seed(13);
  const int64_t count = 7001;
  check_rows(1300, 8, index_of(count, [](int64_t) { return 17; }));
  check_rows(1300, 8, index_of(count, [](int64_t k) { return k * 1300 / 7001; }), bfloat16);
  check_rows(1300, 8, index_of(count, random_below(3)), float64);     // in no order
  check_rows(7001, 4, index_of(count, [](int64_t k) { return k; }));  // each once
}

TEST_CASE("a histogram", "[codegen][threads]") {
  const Tensor index = index_of(5000, random_below(1500));
  check_scatter([](In i) { return Out{scatter_add(zeros({1500}), 0, i[0], ones({5000}))}; },
                {index});
  manual_seed(14);
  check_scatter(counted, {randn({77}), index_of(3000, random_below(77)), randn({3000})});
}

TEST_CASE("a scatter reads what its base, index and updates are made of",
          "[codegen][threads]") {
  manual_seed(15);
  const auto made = [](In i) {
    const Tensor index = where(i[1] < 0, i[1] + 40, i[1]);
    const Tensor places = expand(index.unsqueeze(1), {200, 12});
    return Out{scatter_add(i[0].t() * 2, 0, places, tanh(i[2]) * i[3].unsqueeze(1))};
  };
  check_scatter(made,
                {randn({12, 40}), index_of(200, [](int64_t k) { return k * 7 % 80 - 40; }),
                 randn({200, 12}), randn({200})});
  // the places along the last axis; several axes of columns; i32
  check_scatter(
      [](In i) {
        return Out{scatter_add(i[0], 1, expand(i[1], {6, 90}), i[2])};
      },
      {randn({6, 31}), index_of(90, random_below(31)), randn({6, 90})});
  check_scatter(
      [](In i) {
        const Tensor places = expand(i[1].reshape({1, 90, 1}), {5, 90, 8});
        return Out{scatter_add(i[0], 1, places, i[2])};
      },
      {randn({5, 31, 8}), index_of(90, random_below(31)).to(int32), randn({5, 90, 8})});
}

TEST_CASE("scattered zeros, infinities, NaN and roundings", "[codegen][threads]") {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor base =
      from_vector<float>({-0.0f, 0.0f, 1.0f, infinity, 3e38f, -0.0f, NAN, 1.0f}, Sizes{8, 1});
  const Tensor index = numbers({0, 1, 2, 3, 4, 6, 0, 2, 2, 2});
  const Tensor updates = from_vector<float>(
      {-0.0f, -0.0f, NAN, -infinity, 3e38f, 1.0f, -0.0f, 1e-9f, 1.0f, 2.0f}, Sizes{10, 1});
  for (DType type : {float32, float64, bfloat16, float16})
    check_scatter(into_rows, {base.to(type), index, updates.to(type)});
  // 1 + 2^-8 + 2^-8 ... stays 1 in bf16, where each sum is rounded
  check_scatter(into_rows, {ones({2, 4}).to(bfloat16), index_of(64, random_below(2)),
                            (ones({64, 4}) * 0.00390625).to(bfloat16)});
}

TEST_CASE("an index out of range scatters nothing and is told", "[codegen][threads]") {
  manual_seed(16);
  const Tensor base = randn({9, 8}), updates = randn({6, 8});
  const Tensor index = numbers({3, 9, -1, 8, INT64_MIN, 3});
  const auto [got, errors] = with_errors(into_rows, {base, index, updates});
  CHECK(errors != 0);
  const Tensor kept =
      concat({updates.slice(0, 0, 1), updates.slice(0, 3, 4), updates.slice(0, 5, 6)}, 0);
  const std::vector<Tensor> right = {base, numbers({3, 8, 3}), kept};
  CHECK(same_bits(got, interpret(trace(into_rows, right, "f").graph, right)[0]));
  CHECK(with_errors(into_rows, right).second == 0);
  const std::vector<Tensor> far = {base, numbers({3, 8, (int64_t{1} << 32) + 3}), kept};
  CHECK(with_errors(into_rows, far).second == errors);
}

TEST_CASE("a place out of range stands last in the order and is told", "[codegen][threads]") {
  const int64_t count = 1 << 16;
  const char* ordered = " ends[";
  const auto inputs = [&](int64_t bad) {
    const Pattern some = random_below(4000);
    const Tensor index = index_of(count, [&](int64_t k) { return k == 777 ? bad : some(k); });
    return std::vector<Tensor>{zeros({4000}), index, ones({count})};
  };
  for (int64_t bad : {int64_t{-1}, int64_t{4000}, (int64_t{1} << 32) + 3}) {
    const auto [got, errors] = with_errors(counted, inputs(bad), ordered);
    CHECK(errors != 0);
    CHECK(got.sum().item<float>() == static_cast<float>(count - 1));
  }
  CHECK(with_errors(counted, inputs(5), ordered).second == 0);
}

TEST_CASE("which scatters have blocks that own the result", "[codegen]") {
  const auto is_ours = [](const Function& function, const std::vector<Tensor>& inputs) {
    return text_of(function, inputs).find(kFamily) != std::string::npos;
  };
  const Tensor x = randn({9, 8}), index = numbers({1, 2, 3}), wide = zeros({3, 8}).to(int64);
  CHECK(is_ours(into_rows, {x, index, randn({3, 8})}));
  CHECK_FALSE(is_ours(counted, {x, wide, randn({3, 8})}));  // an index for each column
  CHECK_FALSE(is_ours(counted, {x, wide.slice(1, 0, 5), randn({3, 5})}));  // fewer columns
  const auto few = [](In i) {
    return Out{scatter_add(i[0], 0, expand(i[1].unsqueeze(1), {3, 5}), i[2])};
  };
  CHECK_FALSE(is_ours(few, {x, index, randn({3, 5})}));
  CHECK_FALSE(is_ours([](In i) { return Out{cumsum(i[0], 0)}; }, {x}));
  const Tensor none = zeros({0}).to(int64);
  CHECK_FALSE(is_ours(into_rows, {x, none, zeros({0, 8})}));
  check_bits(into_rows, {x, none, zeros({0, 8})}, without_clusters());
}

TEST_CASE("an embedding's gradient is read and written in packs", "[codegen]") {
  const Tensor index = zeros({8192}).to(int64), updates = zeros({8192, 768});
  const auto gradient = [](In i) {
    return Out{
        scatter_add(zeros({50257, 768}), 0, expand(i[0].unsqueeze(1), {8192, 768}), i[1])};
  };
  const std::string text = text_of(gradient, {index, updates});
  CHECK_THAT(text, ContainsSubstring("block*18432"));  // 96 targets of 192 packs
  CHECK_THAT(text, ContainsSubstring("tc_read<4>(&pack"));
  if (!why_no_nvrtc().empty()) SKIP(why_no_nvrtc());
  const Tensor large = expand(zeros({1, 1}), {3000000, 768});  // more than 2^31 elements
  const std::string far = text_of(into_rows, {large, index, updates});
  CHECK_THAT(far, ContainsSubstring("const long long block"));
  CHECK(compile_cuda(far, "sm_90").size() > 4);
  CHECK(compile_cuda(text, "sm_90").size() > 4);
  for (DType type : {float64, bfloat16, float16, int8})
    CHECK(compile_cuda(text_of(gradient, {index, updates.to(type)}), "sm_90").size() > 4);
}

TEST_CASE("threads scatter a row, chunk by chunk", "[codegen][threads][scatter]") {
  manual_seed(12);
  const Function all = [](In i) {
    return Out{scatter_add(i[0], 0, i[1], i[2]), scatter_reduce(i[0], 0, i[1], i[2], "prod"),
               scatter_reduce(i[0], 0, i[1], i[2], "amin"), scatter(i[0], 0, i[1], i[2])};
  };
  const auto check_rows_of = [&](const std::vector<Tensor>& inputs) {
    const std::string text = check_bits(all, inputs).source.text;
    CHECK_THAT(text, ContainsSubstring(" before_u"));
    if (why_no_nvrtc().empty()) CHECK(compile_cuda(text, "sm_90").size() > 4);
  };
  for (DType type : {float32, float64, bfloat16, uint8}) {
    const auto numbers = [&](const Sizes& shape) { return (rand(shape) * 9.0).to(type); };
    check_rows_of({numbers({7, 5}), (rand({2100, 5}) * 6.9).to(int64), numbers({2100, 5})});
  }
  // one target; values of a byte
  check_bits(into_rows, {randn({1, 5}), index_of(40, random_below(1)), randn({40, 5})});
  const Tensor bytes = (rand({1500, 3}) * 9.0).to(int8);
  check_rows_of({bytes.slice(0, 0, 7), (rand({1500, 3}) * 6.9).to(int64), bytes});
  // to many targets; elements of a row side by side; few rows
  check_rows_of({randn({30000, 3}), (rand({2100, 3}) * 29999.0).to(int64), randn({2100, 3})});
  check_rows_of({randn({5000, 2}), (rand({1025, 2}) * 4999.0).to(int64), randn({1025, 2})});
  const Function along = [](In i) { return Out{scatter_add(i[0], 1, i[1], i[2])}; };
  for (int64_t updates : {1, 31, 1001, 1025})
    check_bits(along, {randn({11, 3000}), (rand({11, updates}) * 2999.0).to(int64),
                       randn({11, updates})});
}

TEST_CASE("a row that also reduces is scattered by a thread alone",
          "[codegen][threads][scatter]") {
  manual_seed(13);
  const Function scaled = [](In i) {
    return Out{scatter_add(i[0], 1, i[1], i[2] * i[2].sum({1}, true))};
  };
  check_bits(scaled, {randn({3, 7}), (rand({3, 1500}) * 6.9).to(int64), randn({3, 1500})});
}
