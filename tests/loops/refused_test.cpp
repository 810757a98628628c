// Program texts that look right and are not: each is refused, with its line and the reason.
#include "tests/catch.h"
#include "tiny_compile/loops/program.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

// A program of one kernel over x0: f32[16] (and more inputs), with y: f32[16] as its result.
std::string one_kernel(const std::string& lines, const std::string& rows = "i0: 16") {
  return "program f {\n  input x0: f32[16]\n  input x1: i64[16]\n  output y: f32[16]\n  kernel "
         "k rows(" +
         rows + ") {\n" + lines + "\n  }\n  launch k\n  return y\n}";
}

void require_refused(const std::string& text, const std::string& message) {
  INFO(text);
  REQUIRE_THROWS_WITH(parse_program(text), ContainsSubstring(message));
}

void require_accepted(const std::string& text) {
  INFO(text);
  REQUIRE_NOTHROW(parse_program(text));
}

std::string masked(const std::string& index, const std::string& mask) {
  return one_kernel("    store y[i0] = load x0[" + index + "] if " + mask + " else 0.0");
}

}  // namespace

TEST_CASE("a masked load stays in its buffer wherever its mask is true", "[loops][refused]") {
  require_refused(masked("i0 + 1000", "lt(index[i0], i64 8)"),
                  "x0[i0 + 1000] leaves the buffer's 16");
  require_refused(masked("i0 + 1000", "bool true"), "leaves the buffer's 16 elements");
  require_refused(masked("i0 + 8", "lt(index[i0], i64 9)"), "as far as its mask tells");
  require_refused(masked("i0 - 3", "lt(index[i0], i64 8)"), "x0[i0 - 3] leaves");
  require_refused(masked("i0 - 3", "not(ge(index[i0], i64 3))"), "no value");
  require_refused(masked("i0 - 3", "bitwise_not(ge(index[i0], i64 3))"), "x0[i0 - 3] leaves");
  require_refused(masked("i0 - 3", "bitwise_or(ge(index[i0], i64 3), lt(index[i0], i64 2))"),
                  "x0[i0 - 3] leaves");
  require_refused(masked("i0 + 8", "lt(load x1[i0], i64 8)"), "x0[i0 + 8] leaves");
  require_accepted(masked("i0 + 8", "lt(index[i0], i64 8)"));
  require_accepted(masked("i0 + 8", "bitwise_not(ge(index[i0], i64 8))"));
  require_accepted(masked("i0 - 3", "ge(index[i0], i64 3)"));
  require_accepted(masked("i0 - 3", "ge(index[i0 - 3], i64 0)"));
  require_accepted(
      masked("i0 - 3", "bitwise_and(gt(index[i0], i64 2), lt(load x1[i0], i64 8))"));
  require_accepted(masked("i0 - 3", "bitwise_or(eq(index[i0], i64 5), gt(index[i0], i64 12))"));
  require_accepted(masked("i0 + 8", "le(index[i0*3 - 1], i64 20)"));
  require_accepted(masked("i0 + 900", "bool false"));
}

TEST_CASE("a mask on a quotient or a remainder bounds what is divided", "[loops][refused]") {
  const auto load = [](const std::string& index, const std::string& mask) {
    return one_kernel("    $1 = load x0[" + index + "] if " + mask +
                      " else 0.0\n    r0: f32 = sum(j0: 8) $1\n    store y[i0] = r0");
  };
  require_accepted(
      load("i0/4*8 + j0 - 8", "bitwise_and(ge(index[i0/4], i64 1), lt(index[i0/4], i64 3))"));
  require_refused(load("i0/4*8 + j0 - 8", "ge(index[i0/4], i64 1)"), "leaves the buffer's 16");
  require_accepted(load("i0*8 + j0", "lt(index[i0/2], i64 1)"));
  require_refused(load("i0*8 + j0", "lt(index[i0/2], i64 2)"), "leaves the buffer's 16");
  require_accepted(
      load("i0*8 + j0 - 3",
           "bitwise_and(ge(index[i0*8 + j0], i64 3), lt(index[i0*8 + j0], i64 19))"));
}

TEST_CASE("a mask on a remainder bounds what goes through it many times", "[loops][refused]") {
  require_accepted(masked("i0 + 3", "lt(index[i0%4], i64 1)"));
  require_refused(masked("i0 + 3", "lt(index[i0%4], i64 2)"), "leaves the buffer's 16");
  require_accepted(masked("i0 - 3", "ge(index[i0%4], i64 3)"));
  require_refused(masked("i0 - 3", "ge(index[i0%4], i64 2)"), "leaves the buffer's 16");
}

TEST_CASE("a mask on a sum bounds what divides it, and multiples of what it says",
          "[loops][refused]") {
  const auto load = [](const std::string& index, const std::string& mask) {
    return one_kernel("    $1 = load x0[" + index + "] if " + mask +
                      " else 0.0\n    r0: f32 = sum(j0: 8) $1\n    store y[i0] = r0");
  };
  const std::string sum =
      "bitwise_and(ge(index[i0 + j0 - 1], i64 0), lt(index[i0 + j0 - 1], i64 12))";
  require_accepted(load("(i0 + j0 + 1)/2 - 1", sum));
  require_accepted(load("(i0 + j0 + 1)/2 + 9", sum));
  require_refused(load("(i0 + j0 + 1)/2 - 2", sum), "leaves the buffer's 16");
  require_refused(load("(i0 + j0 + 1)/2 + 10", sum), "leaves the buffer's 16");
  require_accepted(load("i0 + j0", "lt(index[i0*2 + j0*2], i64 31)"));
  require_accepted(load("i0 + j0", "lt(index[i0*2 + j0*2], i64 32)"));
  require_refused(load("i0 + j0", "lt(index[i0*2 + j0*2], i64 33)"), "leaves the buffer's 16");
}

TEST_CASE("an indirect index stays in its buffer, and is an i64", "[loops][refused]") {
  require_refused(
      one_kernel("    store y[i0] = load x0[at0 + 4000000000; at0 = load x1[i0] < 16]"),
      "x0[at0 + 4000000000] leaves the buffer's 16 elements");
  require_refused(one_kernel("    $0 = lt(index[i0], i64 8)\n    store y[i0] = load x0[at0 + "
                             "4000000000; at0 = load x1[i0] < 16] if $0 else 0.0"),
                  "leaves the buffer's 16 elements");
  require_refused(one_kernel("    store y[i0] = load x0[at0; at0 = load x0[i0] < 16]"),
                  "the place of $1 is chosen by f32, not by an i64");
  require_accepted(one_kernel("    store y[i0] = load x0[at0; at0 = load x1[i0] < 16]"));
}

TEST_CASE("an index can be computed", "[loops][refused]") {
  require_refused(one_kernel("    r0: f32 = sum(j0: 4) load x0[3 % j0]\n    store y[i0] = r0"),
                  "[3%j0] divides by j0, which is not always positive");
  require_refused(
      one_kernel("    r0: f32 = sum(j0: 4) load x0[3 / (j0 - 1)]\n    store y[i0] = r0"),
      "which is not always positive");
  require_accepted(
      one_kernel("    r0: f32 = sum(j0: 4) load x0[3 % (j0 + 1)]\n    store y[i0] = r0"));
  require_refused(one_kernel("    store y[i0] = cast<f32>(index[i0*1000000000000000000])"),
                  "leaves 64 bits");
  require_refused(one_kernel("    store y[i0] = load x0[i0*1000000000000000000 / 7 % 16]"),
                  "leaves 64 bits");
}

TEST_CASE("operands have dtypes that their op takes", "[loops][refused]") {
  require_refused(
      one_kernel("    r0: i64 = sum_exp(j0: 4) load x1[j0]\n    store y[i0] = cast<f32>(r0)"),
      "step 0 sum_exp of i64");
  require_refused(
      one_kernel("    r0: bool = any(j0: 4) load x1[j0]\n    store y[i0] = cast<f32>(r0)"),
      "step 0 any of i64");
  require_refused(one_kernel("    r0: f32 = any(j0: 4) load x0[j0]\n    store y[i0] = r0"),
                  "step 0 any of f32");
  require_refused(one_kernel("    store y[i0] = where(load x1[i0], load x0[i0], f32 1.0)"),
                  "the condition of $3 is i64, not bool");
  require_refused(
      one_kernel("    r0: f64 = max(j0: 4) load x0[j0]\n    store y[i0] = cast<f32>(r0)"),
      "step 0 gives f64, not f32");
  require_refused(
      one_kernel("    r0: f32 = dot(j0: 4) load x0[j0], load x1[j0]\n    store y[i0] = r0"),
      "step 0 multiplies two dtypes");
  require_refused(
      one_kernel("    store y[i0] = cast<f32>(philox<0>(load x1[0], load x1[1])[i0])"),
      "is i64, not u64");
}

TEST_CASE("a refusal names the line", "[loops][refused]") {
  require_refused(
      masked("i0 + 1000", "bool true"),
      "line 6, column 5: program f, kernel k: x0[i0 + 1000] leaves the buffer's 16 elements");
}

namespace {

std::string with_schedule(const std::string& schedule, const std::string& target = "") {
  return "program f" + target +
         " {\n  input x0: f32[8,1024]\n  output y: f32[8]\n  kernel k rows(i0: 8) {\n"
         "    r0: f32 = sum(j0: 1024) load x0[i0*1024 + j0]\n    store y[i0] = r0\n    "
         "schedule " +
         schedule + "\n  }\n  launch k\n  return y\n}";
}

}  // namespace

TEST_CASE("what is read or returned is written everywhere", "[loops][refused]") {
  require_refused(one_kernel("    store y[i0] = load x0[i0]", "i0: 15"),
                  "step 0 stores y[i0], which is not seen to write each of 16 elements once");
  require_refused(one_kernel("    store y[i0*2] = load x0[i0]", "i0: 8"), "stores y[i0*2]");
  require_refused(one_kernel("    store y[i0*8 + j0] for (j0: 7) = load x0[i0]", "i0: 2"),
                  "not seen to write each of 16");
  require_accepted(one_kernel("    store y[i0*8 + j0] for (j0: 8) = load x0[i0]", "i0: 2"));
  require_accepted(one_kernel("    store y[15 - i0] = load x0[i0]"));
  require_accepted(one_kernel("    store y[i0%4*4 + i0/4] = load x0[i0]"));
  require_accepted(one_kernel("    store y[i0/8*8 + i0%2*4 + i0/2%4] = load x0[i0]"));
}

TEST_CASE("no two points write one element", "[loops][refused]") {
  require_refused(one_kernel("    store y[i0 + i1] = load x0[i0]", "i0: 8, i1: 9"),
                  "stores y[i0 + i1]");
  require_refused(one_kernel("    store y[i0/2*2 + i0%2/2] = load x0[i0]"),
                  "not seen to write");
  require_refused(
      one_kernel("    store y[i0] = load x0[i0]\n    store y[15 - i0] = load x0[i0]"),
      "step 1 writes y, which another step writes");
}

TEST_CASE("a scatter stays in its row", "[loops][refused]") {
  const auto scatter = [](const std::string& place, const std::string& limit) {
    return "program f {\n  input x0: f32[4,8]\n  input x1: i64[4,3]\n  output y: f32[4,8]\n  "
           "kernel k "
           "rows(i0: 4) {\n    store y[i0*8 + j0] for (j0: 8) = load x0[i0*8 + j0]\n    "
           "scatter y[" +
           place + "; at0 = load x1[i0*3 + j1] < " + limit +
           "] for (j1: 3) = scatter_add load x0[i0*8 + j1]\n  }\n  launch k\n  return y\n}";
  };
  require_accepted(scatter("i0*8 + at0", "8"));
  require_refused(scatter("i0*4 + at0", "8"), "is not seen to be its row's part");
  require_refused(scatter("at0", "32"), "is not seen to be its row's part");
  require_refused(scatter("i0*8 + at0", "9"), "leaves the buffer's 32");
}

TEST_CASE("a scatter's places are those that its row has stored, not as many others",
          "[loops][refused]") {
  const auto scatter = [](const std::string& place) {
    return "program f {\n  input x0: i8[3,4,3]\n  output y: i8[3,4,3]\n  kernel k rows(i0: 3, "
           "i1: 3) {\n    store y[i0*12 + i1 + j0*3] for (j0: 4) = load x0[i0*12 + i1 + "
           "j0*3]\n "
           "   scatter y[" +
           place +
           " + i0*12 + i1; at0 = i64 2 < 4] for (j1: 4) = scatter_prod i8 3\n  }\n  "
           "launch k\n  return y\n}";
  };
  require_accepted(scatter("at0*3"));
  require_refused(scatter("at0"), "is not seen to be its row's part");
  require_refused(scatter("at0*2"), "is not seen to be its row's part");
}

TEST_CASE("a scan under a mask covers its row and no other", "[loops][refused]") {
  const auto scan = [](const std::string& index, const std::string& place,
                       const std::string& rows = "i0: 2, i1: 4") {
    return "program f {\n  input x0: f32[2,1000]\n  output y: f32[2,1000]\n  kernel k rows(" +
           rows + ") {\n    scan y[" + index +
           "] for (j0: 256) = cumsum f32 1.0 where lt(index[" + place +
           "], i64 1000)\n  }\n  launch k\n  return y\n}";
  };
  require_accepted(scan("i0*1000 + i1*256 + j0", "i1*256 + j0"));
  require_refused(scan("i0*1000 + i1*512 + j0", "i1*512 + j0"), "not seen to write each");
  require_refused(scan("i0*1000 + i1*255 + j0", "i1*255 + j0"), "not seen to write each");
  require_refused(scan("i0*1000 + i1*256 + j0", "i1*256 + j0", "i0: 2, i1: 4, i2: 2"), "");
  require_refused(scan("i0*999 + i1*256 + j0", "i1*256 + j0"), "not seen to write each");
}

TEST_CASE("what the order of kernels or the memory plan forbids has a line too",
          "[loops][refused]") {
  const std::string text =
      "program f {\n  input x0: f32[16]\n  temp t: f32[16] at 0\n  output y: f32[16]\n  kernel "
      "k "
      "rows(i0: 16) {\n    store t[i0] = load x0[i0]\n  }\n  kernel l rows(i0: 16) {\n    "
      "store "
      "y[i0] = load t[i0]\n  }\n  launch k\n  launch l\n  arena 64\n  return y\n}";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    return changed.replace(changed.find(from), from.size(), to);
  };
  require_accepted(text);
  require_refused(with("launch k\n  launch l", "launch l\n  launch k"),
                  "line 8, column 10: program f: kernel l reads t before");
  require_refused(with("  launch k\n", ""),
                  "line 8, column 10: program f: kernel l reads t before");
  require_refused(with("  launch l\n", ""),
                  "line 8, column 10: program f: kernel l is launched 0 times");
  require_refused(with("at 0", "at 64"),
                  "line 3, column 7: program f: t ends beyond the arena");
}

TEST_CASE("a schedule that cannot be obeyed is refused", "[loops][refused]") {
  require_refused(
      with_schedule("columns lanes=24"),
      "line 7, column 5: program f, kernel k: schedule lanes=24: a power of two, 16 to 1024");
  require_refused(with_schedule("rows warps=4"), "a schedule has no field 'warps'");
  require_refused(with_schedule("columns cluster=4"), "a schedule has no field 'cluster'");
  require_refused(with_schedule("columns lanes=0"),
                  "schedule lanes=0: a power of two, 16 to 1024");
  require_refused(with_schedule("rows grain=0"), "schedule grain=0: at least 1");
  require_refused(with_schedule("rows unroll=3"), "schedule unroll=3: 1 or 8");
  require_refused(with_schedule("tiles"), "schedule tiles is for one dot and stores");
  require_refused(with_schedule("pointwise"), "schedule pointwise is for stores alone");
  require_refused(with_schedule("rows keep=2"), "keep=2: at most 1");
  require_refused(with_schedule("layouts early=2", " on cuda"), "early=2: at most 1");
  require_refused(with_schedule("tiles panels_down=4000000"),
                  "panels_down=4000000: at most 1048576");
  require_refused(with_schedule("rows\n    schedule rows"), "a second schedule of this kernel");
  require_accepted(with_schedule("columns lanes=16"));
  require_refused(one_kernel("    store y[0] = load x0[0]\n    schedule pointwise", ""), "");
}

TEST_CASE("a product's tiles are what threads can stage and shared memory holds",
          "[loops][refused]") {
  const auto product = [](const std::string& schedule) {
    return "program f on cuda {\n  input a: f64[70,90]\n  input b: f64[90,80]\n  output y: "
           "f64[70,80]\n  kernel k rows(i0: 70, i1: 80) {\n    r0: f64 = dot(j0: 90) load "
           "a[i0*90 + j0], load b[i1 + j0*80]\n    store y[i0*80 + i1] = r0\n    schedule " +
           schedule + "\n  }\n  launch k\n  return y\n}";
  };
  for (const char* legal : {"tiles", "tiles each=8 slice=8", "tiles each=2 slice=32",
                            "tiles each=1", "tiles each=8 slice=16"})
    require_accepted(product(legal));
  require_refused(product("tiles each=3"), "each=3: 1, 2, 4 or 8 rows and columns of a thread");
  require_refused(product("tiles each=0"), "each=0: 1, 2, 4 or 8");
  require_refused(product("tiles each=2 slice=4"),
                  "slice=4: a power of two, from 8 on with each=2");
  require_refused(product("tiles slice=24"), "slice=24: a power of two, from 4 on");
  require_refused(product("tiles each=8 slice=32"),
                  "slice=32: 67584 bytes of shared memory, of which a block has 49152");
  require_refused(product("tiles each=1048576"), "each=1048576: 1, 2, 4 or 8");
  require_refused(product("rows each=8"), "schedule rows each=8: for rows that are sorted");
}

TEST_CASE("a field of a schedule that nobody reads is refused", "[loops][refused]") {
  const std::string cuda = " on cuda";
  require_refused(with_schedule("rows lanes=32"),
                  "schedule lanes=32 is for columns on the CPU");
  require_refused(with_schedule("columns unroll=8"),
                  "schedule unroll=8 is for rows on the CPU");
  require_refused(with_schedule("columns lanes=32", cuda),
                  "schedule lanes=32 is for columns on the CPU");
  require_refused(with_schedule("columns outer=1"), "schedule outer=1 is for layouts on cuda");
  require_refused(with_schedule("rows keep=0", cuda),
                  "schedule keep=0 is for pointwise, rows on the CPU, layouts on cuda");
  require_refused(with_schedule("columns grain=4", cuda),
                  "schedule grain=4 is for pointwise, rows, columns, tiles on the CPU");
  require_refused(with_schedule("columns stream=1"),
                  "schedule stream=1 is for pointwise, rows on the CPU");
  require_refused(with_schedule("rows early=0"),
                  "schedule early=0 is for pointwise, layouts on cuda");
  require_refused(with_schedule("rows run=2", cuda),
                  "schedule rows run=2: of a result that blocks own runs of");
  require_accepted(with_schedule("rows keep=0 unroll=8 grain=4"));
  require_accepted(with_schedule("rows", cuda));
  require_accepted(with_schedule("columns", cuda));
}

TEST_CASE("results that cannot go past the caches are not asked to", "[loops][refused]") {
  const std::string why = "stream=1: no results lie in lines along their loop, unread";
  const auto points = [](const std::string& index, const std::string& machine = "") {
    return "program f" + machine +
           " {\n  input x: f32[20,30]\n  output y: f32[20,30]\n  kernel k rows(i0: 20, i1: 30) "
           "{\n    store y[" +
           index + "] = exp(load x[i0*30 + i1])\n    schedule pointwise stream=1\n  }\n  " +
           "launch k\n  return y\n}";
  };
  require_accepted(points("i0*30 + i1"));
  require_refused(points("i1*20 + i0"), why);
  require_refused(points("i0*30 - i1 + 29"), why);
  require_refused(points("i0*30 + i1", " for mine cores=1 l1=511"), why);
  require_refused(with_schedule("rows stream=1"), why);  // a result a row
  const std::string one_of_two = one_kernel(
      "    r0: f32 = sum(j0: 16) load x0[j0]\n    store y[i0] = r0\n    store z[i0*16 + "
      "j0] for (j0: 16) = mul(load x0[j0], r0)\n    schedule rows stream=1");
  std::string two = one_of_two;
  two.insert(two.find("  output y"), "  output z: f32[256]\n");
  two.replace(two.find("return y"), 8, "return z, y");
  require_accepted(two);
}

TEST_CASE("eighths of a chunk are refused where there is none of cheap elements",
          "[loops][refused]") {
  const auto rows = [](const std::string& step, int64_t size = 4096) {
    return str(
        "program f {\n  input x: f32[2,", size, "]\n  input i: i32[2,", size,
        "]\n  output y: f32[2]\n  kernel k rows(i0: 2) {\n    ", step,
        "\n    store y[i0] = cast<f32>(r0)\n    schedule rows unroll=8\n  }\n  launch k\n"
        "  return y\n}");
  };
  const std::string why =
      "schedule rows unroll=8: no reduction of floats has a full chunk of 1024 elements";
  require_accepted(rows("r0: f32 = sum(j0: 4096) load x[i0*4096 + j0]"));
  require_accepted(rows("r0: f32 = max(j0: 1024) load x[i0*4096 + j0]"));
  require_refused(rows("r0: f32 = sum(j0: 1023) load x[i0*4096 + j0]"), why);
  require_refused(rows("r0: f32 = sum(j0: 4096) exp(load x[i0*4096 + j0])"), why);
  require_refused(rows("r0: f32 = sum_exp(j0: 4096) load x[i0*4096 + j0]"), why);
  require_refused(rows("r0: i64 = sum(j0: 4096) load i[i0*4096 + j0]"), why);
  require_refused(rows("r0: i64 = argmax(j0: 4096) load x[i0*4096 + j0]"), why);
  require_refused(rows("r0: f32 = sum(j0: 64, j1: 64) load x[i0*4096 + j1*64 + j0]"), why);
  require_refused(rows("r0: f32 = sum(j0: 4096) load x[i0*4096 + j0/64 + j0%64*64]"), why);
}

namespace {

// On a GPU, of f32[500,3000], whose schedule is of layouts.
std::string laid_out(const std::string& load, const std::string& schedule) {
  return "program f on cuda {\n  input x: f32[500,3000]\n  input i: i64[500,3000]\n  output y: "
         "f32[500]\n  kernel k rows(i0: 500) {\n    r0: f32 = sum(j0: 3000) " +
         load + "\n    store y[i0] = r0\n    schedule layouts rows " + schedule +
         "\n  }\n  launch k\n  return y\n}";
}

}  // namespace

TEST_CASE("a prefetch of nothing is refused", "[loops][refused]") {
  const std::string row = "load x[i0*3000 + j0]",
                    side_by_side = "grid loop warp 4 · register 32 · lane 32 prefetch=";
  require_accepted(laid_out(row, side_by_side + "499"));
  require_refused(laid_out(row, side_by_side + "500"),
                  "schedule prefetch=500: there are 500 blocks");
  require_refused(laid_out(row, "grid loop register 32 · lane 32 · warp 4 prefetch=4"),
                  "prefetch=4: a warp's elements of the loop are not side by side, at once");
  require_refused(laid_out(row, "grid loop warp 4 · serial 32 · lane 32 prefetch=4"),
                  "prefetch=4: a warp's elements of the loop are not side by side, at once");
  require_refused(
      laid_out(row,
               "grid · register 2 loop warp 4 · register 32 · lane 32 "
               "prefetch=4"),
      "prefetch=4: blocks of an outer row axis, and threads of several rows, ask for");
  require_refused(laid_out(row, "grid loop warp 4 · register 32 · lane 32 prefetch=4 outer=1"),
                  "prefetch=4: blocks of an outer row axis");
  const std::string why = "prefetch=4: no load of a row, without a mask or a place that data";
  for (const char* load : {"load x[i0 + j0*500]", "load x[j0]", "load x[2999 + i0*3000 - j0]",
                           "load x[i0*3000 + at0; at0 = load i[j0] < 3000]",
                           "load x[i0*3000 + j0] if lt(index[j0], i64 2999) else 0.0"})
    require_refused(laid_out(load, side_by_side + "4"), why);
  require_accepted(
      laid_out("load x[i0*3000 + at0; at0 = load i[i0*3000 + j0] < 3000]", side_by_side + "4"));
}

TEST_CASE("more of a row than it has is refused", "[loops][refused]") {
  const auto scan = [](const std::string& schedule) {
    return "program f on cuda {\n  input x: f32[64,200]\n  output y: f32[64,200]\n  kernel k "
           "rows(i0: 64) {\n    scan y[i0*200 + j0] for (j0: 200) = cumsum load x[i0*200 + "
           "j0]\n    schedule rows " +
           schedule + "\n  }\n  launch k\n  return y\n}";
  };
  require_accepted(scan("groups=16 beside=8"));
  require_refused(scan("groups=256"), "schedule rows groups=256: a row has 13 groups of 16");
  const auto sort = [](const std::string& schedule) {
    return "program f on cuda {\n  input x: f32[64,5]\n  output y: i64[64,5]\n  kernel k "
           "rows(i0: 64) {\n    sort y[i0*5 + j0] for (j0: 5) = argsort load x[i0*5 + "
           "j0]\n    schedule rows " +
           schedule + "\n  }\n  launch k\n  return y\n}";
  };
  require_accepted(sort("each=8"));
  require_refused(sort("each=16"), "schedule rows each=16: 5 elements are sorted together");
  const auto product = [](const std::string& schedule) {
    return "program f {\n  input a: f32[70,90]\n  input b: f32[90,80]\n  output y: f32[70,80]\n"
           "  kernel k rows(i0: 70, i1: 80) {\n    r0: f32 = dot(j0: 90) load a[i0*90 + j0], "
           "load "
           "b[i1 + j0*80]\n    store y[i0*80 + i1] = r0\n    schedule tiles " +
           schedule + "\n  }\n  launch k\n  return y\n}";
  };
  require_accepted(product("depth=90"));
  require_accepted(product(""));
  require_refused(product("depth=91"), "schedule tiles depth=91: the sums have 90 steps");
}

TEST_CASE("buffers that no memory can be are refused", "[loops][refused]") {
  const auto with = [](const std::string& buffer) {
    return "program f {\n  input x0: f32[16]\n  " + buffer +
           "\n  output y: f32[16]\n  kernel k rows(i0: 16) {\n    store t[i0] = load x0[i0]\n  "
           "}\n  kernel "
           "l rows(i0: 16) {\n    store y[i0] = load t[i0]\n  }\n  launch k\n  launch l\n  "
           "arena 64\n"
           "  return y\n}";
  };
  require_accepted(with("temp t: f32[16] at 0"));
  require_refused(with("temp t: f32[16] at 64"), "t ends beyond the arena");
  require_refused(with("temp t: f32[16] at 3"), "a multiple of 64 bytes");
  require_refused(with("temp t: f32[16] offset=4"), "an offset is for inputs");
  require_refused(with("temp t: f32[16] size=20 at 0"), "t ends beyond the arena");
  require_refused(with("temp t: f32[16] align=3"), "align=3 is no power of two");
}
