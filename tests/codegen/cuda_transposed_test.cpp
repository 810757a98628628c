// Points whose loads and stores run along different axes: the interpreter's bits, thread by
// thread, and the side that is transposed.
#include "tests/codegen/cuda_threads.h"
#include "tiny_compile/runtime/nvrtc.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::threads;
using Catch::Matchers::ContainsSubstring;

namespace {

Out three(In i) { return {maximum(i[0] * i[1] + i[2], i[0]) + i[0] * 0.5}; }
Out gelu_of_two(In i) { return {gelu(i[0] + i[1])}; }
Out sum_of_two(In i) { return {i[0] + i[1]}; }

// "float staged0[4160]": the arrays that accesses go by way of.
std::vector<std::string> staged_in(const std::string& text) {
  const std::string shared = "__shared__ alignas(16) ";
  std::vector<std::string> arrays;
  for (size_t at = text.find(shared); at != std::string::npos; at = text.find(shared, at + 1)) {
    const size_t from = at + shared.size();
    const std::string array = text.substr(from, text.find(';', from) - from);
    if (array.find("staged") != std::string::npos) arrays.push_back(array);
  }
  return arrays;
}

void check_compiles(const std::string& text) {
  if (why_no_nvrtc().empty()) CHECK(compile_cuda(text, "sm_90").size() > 4);
}

}  // namespace

TEST_CASE("several loads across the grain: the one result is transposed",
          "[codegen][threads]") {
  manual_seed(5);
  const std::string text =
      check(three, {transposed(128, 64), transposed(128, 64), transposed(128, 64)}, "layouts");
  CHECK(staged_in(text) == std::vector<std::string>{"float staged0[4160]"});  // 64 * 65
  check_compiles(text);
  for (auto [rows, columns] :
       std::vector<std::pair<int64_t, int64_t>>{{45, 70}, {33, 68}, {36, 37}})
    check(three,
          {transposed(rows, columns), transposed(rows, columns), transposed(rows, columns)},
          "layouts");
}

TEST_CASE("few loads across the grain: they are transposed, as before", "[codegen][threads]") {
  const std::string text = check([](In i) { return Out{i[0].t() + i[1]}; },
                                 {randn({70, 64}), randn({64, 70})}, "layouts");
  CHECK_THAT(text, ContainsSubstring("load_0 = staged0["));
  const std::string one =
      check([](In i) { return Out{i[0].t() * 2.0}; }, {randn({70, 64})}, "layouts");
  CHECK(one.find("load_0 = staged0[") == std::string::npos);
}

TEST_CASE("what is not transposed is read before threads wait for each other",
          "[codegen][threads]") {
  manual_seed(9);
  const auto reads_before = [](const std::string& text, const std::string& what) {
    const size_t body = text.find(") {", text.find("extern \"C\"")),
                 read = text.find(what, body);
    return read != std::string::npos && read < text.find("__syncthreads", body);
  };
  CHECK(reads_before(check([](In i) { return Out{i[0].t() + i[1]}; },
                           {randn({70, 64}), randn({64, 70})}, "layouts"),
                     "in_x1"));
  const std::string bias = check([](In i) { return Out{i[0].t() + i[1] * i[2]}; },
                                 {randn({70, 64}), randn({64, 70}), randn({70})}, "layouts");
  CHECK(reads_before(bias, "in_x1"));
  CHECK(!reads_before(bias, "in_x2"));  // all rows have it alike
}

TEST_CASE("warps have one line's parts at a time, and small tiles where large ones are empty",
          "[codegen][threads]") {
  manual_seed(10);
  const auto add = [](In i) { return Out{i[0].t() + i[1]}; };
  const std::string odd = check(add, {randn({133, 64}), randn({64, 133})}, "layouts");
  CHECK_THAT(odd, ContainsSubstring("(warp%2)*32"));
  CHECK(staged_in(odd) == std::vector<std::string>{"float staged0[4160]"});  // 64 * 65
  const std::string short_rows = check(add, {randn({133, 77}), randn({77, 133})}, "layouts");
  CHECK(staged_in(short_rows) == std::vector<std::string>{"float staged0[2080]"});  // 32 * 65
}

TEST_CASE("halves are transposed in wide tiles, either side", "[codegen][threads]") {
  manual_seed(6);
  const std::string text =
      check(sum_of_two, {transposed(128, 64, bfloat16), randn({64}).to(bfloat16)}, "layouts");
  CHECK(staged_in(text) == std::vector<std::string>{"tc_bf16 staged0[4224]"});  // 64 * 66
  check_compiles(text);
  check(sum_of_two, {transposed(65, 77, bfloat16), randn({77}).to(bfloat16)}, "layouts");
  check(sum_of_two, {transposed(130, 66, float16), transposed(130, 66, float16)}, "layouts");
  const std::string loads = check(
      sum_of_two, {transposed(128, 64, bfloat16), randn({128, 64}).to(bfloat16)}, "layouts");
  CHECK(staged_in(loads) == std::vector<std::string>{"tc_bf16 staged0[4224]"});
  check_compiles(loads);
}

TEST_CASE(
    "costly elements of packs of halves have large blocks where there are enough, others small "
    "ones",
    "[codegen][threads]") {
  manual_seed(11);
  const auto of_bytes = [](const std::string& text) { return staged_in(text).at(0); };
  const auto warps = [](const std::string& text) {
    const std::string before = "__launch_bounds__(";
    return std::stoi(text.substr(text.find(before) + before.size())) / 32;
  };
  const std::string many = check(
      gelu_of_two, {transposed(832, 704, bfloat16), randn({704}).to(bfloat16)}, "layouts");
  CHECK(of_bytes(many) == "tc_bf16 staged0[4224]");  // 64 * 66
  CHECK(warps(many) == 8);
  const std::string few =
      check(gelu_of_two, {transposed(128, 64, bfloat16), randn({64}).to(bfloat16)}, "layouts");
  CHECK(of_bytes(few) == "tc_bf16 staged0[1088]");  // 32 * 34
  CHECK(warps(few) == 8);
  const std::string singles =
      check(gelu_of_two, {transposed(832, 704), randn({704})}, "layouts");
  CHECK(of_bytes(singles) == "float staged0[1056]");  // 32 * 33
  CHECK(warps(singles) == 4);
  CHECK_THAT(singles,
             ContainsSubstring("load_0 = staged0["));  // it is computed where it is stored
  check(gelu_of_two, {transposed(833, 703, bfloat16), randn({703}).to(bfloat16)}, "layouts");
  check(gelu_of_two, {transposed(833, 703), randn({703})}, "layouts");
}

TEST_CASE("rows of 8 to 31 have tiles of their own side", "[codegen][threads]") {
  manual_seed(12);
  const auto permuted = [](In i) { return Out{i[0].permute({0, 2, 1}) * 2.0}; };
  const auto costly = [](In i) { return Out{gelu(i[0].permute({0, 2, 1}))}; };
  for (const int64_t rows : {8, 9, 12, 16, 31}) {
    for (const int64_t columns : {32, 45, 288}) {
      for (const DType type : {DType::f32, DType::bf16, DType::u8}) {
        const Tensor x = (randn({3, columns, rows}) * 9).to(type);
        check(permuted, {x}, "layouts");
        if (is_float(type)) check(costly, {x}, "layouts");
      }
    }
  }
  const std::string text = check(permuted, {randn({5, 288, 12})}, "layouts");
  CHECK(staged_in(text) == std::vector<std::string>{"float staged0[1088]"});  // 64 * 17
  check(permuted, {randn({5, 288, 7})}, "pointwise");
}

TEST_CASE("both sides at once, several outputs, other types and more axes",
          "[codegen][threads]") {
  manual_seed(7);
  // three loads across, one along: that one and the results are transposed
  check([](In i) { return Out{i[0] * i[1] + i[2] - i[3]}; },
        {transposed(40, 48), transposed(40, 48), transposed(40, 48), randn({40, 48})},
        "layouts");
  check(
      [](In i) {
        return Out{i[0] * i[1], i[1] + i[2]};
      },
      {transposed(35, 64), transposed(35, 64), transposed(35, 64)}, "layouts");
  check([](In i) { return Out{i[0] * i[1]}; },
        {transposed(40, 34, float64), transposed(40, 34, float64)}, "layouts");
  check([](In i) { return Out{i[0].to(float32) * i[1] + i[2]}; },
        {transposed(40, 48, bfloat16), transposed(40, 48), transposed(40, 48)}, "layouts");
  check(
      [](In i) {
        return Out{i[0].permute({0, 2, 1}) * i[1].permute({0, 2, 1})};
      },
      {randn({3, 33, 40}), randn({3, 33, 40})}, "layouts");
  check([](In i) { return Out{where(i[0] > i[1], i[0], i[1])}; },
        {transposed(7, 64), transposed(7, 64)}, "pointwise");
}

TEST_CASE("more loads to be transposed than shared memory holds", "[codegen][threads]") {
  manual_seed(8);
  std::vector<Tensor> many;
  for (int k = 0; k < 11; k++) many.push_back(transposed(33, 40));
  for (int k = 0; k < 13; k++) many.push_back(randn({33, 40}));
  const std::string text = check(
      [](In i) {
        Tensor sum = i[0];
        for (size_t k = 1; k < i.size(); k++) sum = sum + i[k];
        return Out{sum};
      },
      many, "layouts");
  check_compiles(text);
}
