// tc from the outside: what it prints, and its exit codes.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/cli/commands.h"
#include "tiny_compile/graph/op.h"
#include "tiny_compile/loops/machine.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/tensor/npy.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr const char* kSoftmax = R"(graph softmax(%0 x: f32[5,33]) {
  %1: f32[5,1] = max %0 {axes=[1], keepdim=1}
  %2: f32[5,33] = expand %1
  %3: f32[5,33] = sub %0, %2
  %4: f32[5,33] = exp %3
  %5: f32[5,1] = sum %4 {axes=[1], keepdim=1}
  %6: f32[5,33] = expand %5
  %7: f32[5,33] = div %4, %6
  return %7
}
)";

struct Ran {
  int code = 0;
  std::string out, problems;
};

Ran tc(std::vector<std::string> words, const std::string& input = kSoftmax) {
  std::istringstream in(input);
  std::ostringstream out, problems;
  Ran ran;
  ran.code = run_tc(words, in, out, problems);
  ran.out = out.str();
  ran.problems = problems.str();
  return ran;
}

}  // namespace

TEST_CASE("tc run compares with the interpreter and exits with 0", "[tc]") {
  for (const char* backend : {"cpp", "eager", "interpreter"}) {
    const Ran ran =
        tc({"run", "-", "--against=interpreter", std::string("--backend=") + backend});
    INFO(ran.problems);
    CHECK(ran.code == 0);
    CHECK_THAT(ran.out, ContainsSubstring("output 0: f32[5,33] checksum 0x"));
    CHECK_THAT(ran.out, ContainsSubstring("the same bits"));
  }
}

TEST_CASE("tc run gives the same checksum after every stage and for the same seed", "[tc]") {
  const std::string whole = tc({"run", "-", "--seed=7"}).out;
  for (const char* stage :
       {"simplify", "lower", "fuse", "schedule", "plan_memory", "tile", "emit"})
    CHECK(tc({"run", "-", "--seed=7", std::string("--until=") + stage}).out == whole);
  CHECK(tc({"run", "-", "--seed=7", "--passes=cse,fuse"}).out == whole);
  CHECK(tc({"run", "-", "--seed=8"}).out != whole);
}

TEST_CASE("tc run calls what it compiled as often as asked, with the same bits", "[tc]") {
  const std::string once = tc({"run", "-"}).out;
  for (const char* backend : {"cpp", "interpreter"}) {
    const std::string who = std::string("--backend=") + backend;
    CHECK(tc({"run", "-", "--calls=3", who}).out == once);
    CHECK_THAT(tc({"run", "-", "--calls=0", who}).problems, ContainsSubstring("no result"));
    CHECK_THAT(tc({"run", "-", "--calls=-1", who}).problems, ContainsSubstring("no number"));
  }
  CHECK_THAT(tc({"bench", "-", "--calls=3"}).problems,
             ContainsSubstring("no effect in tc bench"));
}

TEST_CASE("tc exits with 2 and names the first element where results differ", "[tc]") {
#ifndef __FMA__
  if (!__builtin_cpu_supports("fma")) SKIP("this CPU has no fma to break the contract with");
#endif
  const std::string text =
      "graph g(%0 a: f32[64], %1 b: f32[64], %2 c: f32[64]) {\n"
      "  %3: f32[64] = mul %0, %1\n  %4: f32[64] = add %3, %2\n  return %4\n}\n";
  const char* flags = std::getenv("TC_CXXFLAGS");
  const tests::Setting contract("TC_CXXFLAGS",
                                std::string(flags ? flags : "") + " -ffp-contract=fast");
  const Ran ran = tc({"run", "-", "--against=interpreter"}, text);
  CHECK(ran.code == 2);
  CHECK_THAT(ran.out, ContainsSubstring("output 0 differs") && ContainsSubstring("element"));
}

TEST_CASE("tc prints the IR after a stage, and the program reads back", "[tc]") {
  CHECK(tc({"print", "-"}).out == kSoftmax);
  const std::string program = tc({"print", "-", "--until=fuse"}).out;
  CHECK_THAT(program, ContainsSubstring("kernel max_sub_exp_sum_div_7 rows(i0: 5)"));
  CHECK(tc({"print", "-"}, program).out == program);
  CHECK(tc({"verify", "-"}, program).code == 0);
  const Ran ran = tc({"run", "-", "--against=interpreter"}, program);
  CHECK(ran.code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("the same bits"));
}

TEST_CASE("tc obeys the schedule that a program has", "[tc]") {
  const std::string program = tc({"print", "-", "--until=schedule"}).out;
  const size_t at = program.find("    schedule rows ");
  REQUIRE(at != std::string::npos);
  const auto with = [&](const std::string& line) {
    return program.substr(0, at) + "    schedule " + line +
           program.substr(program.find('\n', at));
  };
  CHECK(tc({"emit", "-"}, program).out == tc({"emit", "-"}).out);
  const std::string recomputing = with("rows keep=0");
  for (const char* stage : {"fuse", "schedule"})
    CHECK(tc({"print", "-", std::string("--until=") + stage}, recomputing).out == recomputing);
  CHECK(tc({"emit", "-"}, recomputing).out != tc({"emit", "-"}).out);
  CHECK(tc({"emit", "-"}, recomputing).out ==
        tc({"emit", "-", "--passes=plan_memory,emit"}, recomputing).out);
  CHECK(tc({"run", "-", "--against=interpreter"}, recomputing).code == 0);
  CHECK_THAT(tc({"explain", "-"}, recomputing).out, ContainsSubstring("schedule rows keep=0"));
  CHECK(tc({"bench", "-"}, recomputing).code == 0);
}

TEST_CASE("tc obeys a line that is edited behind the last stage", "[tc]") {
  const std::string sum =
      "graph f(%0 x: f32[4194304]) {\n  %1: f32[] = sum %0 {axes=[0]}\n  return %1\n}\n";
  const std::string planned =
      tc({"print", "-", "--until=plan_memory", "--target=cuda"}, sum).out;
  const size_t at = planned.find("early=1");
  REQUIRE(at != std::string::npos);
  const std::string edited = std::string(planned).replace(at, 7, "early=0");
  CHECK(tc({"print", "-", "--until=plan_memory"}, edited).out == edited);
  CHECK_THAT(tc({"emit", "-"}, planned).out, ContainsSubstring("tc_has_waited()"));
  CHECK_THAT(tc({"emit", "-"}, edited).out, !ContainsSubstring("tc_has_waited()"));
}

TEST_CASE("tc refuses a schedule that it cannot obey, with all stages and with one", "[tc]") {
  const auto text = [](const std::string& target, const std::string& schedule) {
    return "program f" + target +
           " {\n  input x: f32[64,1000]\n  output y: f32[64]\n  kernel k rows(i0: 64) {\n"
           "    r0: f32 = sum(j0: 1000) load x[i0*1000 + j0]\n    store y[i0] = r0\n"
           "    schedule " +
           schedule + "\n  }\n  launch k\n  return y\n}\n";
  };
  const auto problems = [&](const std::string& target, const std::string& schedule) {
    const Ran whole = tc({"emit", "-", "--target=cuda"}, text(target, schedule)),
              last =
                  tc({"emit", "-", "--target=cuda", "--passes=emit"}, text(target, schedule));
    CHECK(whole.code == last.code);
    CHECK(whole.problems == last.problems);
    return whole.problems;
  };
  for (const char* target : {"", " on cuda"}) {
    CHECK_THAT(problems(target, "columns lanes=24"), ContainsSubstring("lanes=24: a power"));
    CHECK_THAT(problems(target, "columns lanes=0"), ContainsSubstring("lanes=0: a power"));
    CHECK_THAT(problems(target, "columns vector=4"), ContainsSubstring("no field 'vector'"));
    CHECK_THAT(problems(target, "rows vector=3"), ContainsSubstring("no field 'vector'"));
    CHECK_THAT(problems(target, "rows warps=100"), ContainsSubstring("no field 'warps'"));
  }
  CHECK_THAT(problems("", "rows grain=3"), ContainsSubstring("grain=3 is for"));
  CHECK(problems(" on cuda", "columns").empty());
}

TEST_CASE("tc takes a machine by name or by its numbers", "[tc]") {
  const auto printed = [](const std::string& machine, const std::string& text = kSoftmax) {
    return tc({"print", "-", "--until=schedule", "--machine=" + machine}, text);
  };
  CHECK_THAT(printed("a100").out, ContainsSubstring("on cuda for a100 {"));
  CHECK_THAT(printed("h200").out, ContainsSubstring(" on cuda {"));
  CHECK_THAT(printed("cpu:4").out, ContainsSubstring(" for cpu:4 {"));
  const std::string for_a100 = printed("a100").out;
  CHECK(tc({"print", "-", "--until=schedule"}, for_a100).out == for_a100);
  CHECK(printed("rtx4090", for_a100).out == printed("rtx4090").out);
  CHECK(tc({"emit", "-", "--target=cuda", "--machine=h200"}).out ==
        tc({"emit", "-", "--target=cuda"}).out);
  CHECK(tc({"run", "-", "--machine=cpu:2", "--against=interpreter"}).code == 0);
  CHECK_THAT(printed("h300").problems,
             ContainsSubstring("there are h200, h100, a100, rtx4090"));
  CHECK_THAT(tc({"emit", "-", "--target=cpp", "--machine=a100"}).problems,
             ContainsSubstring("--machine=a100 is a GPU: it needs --target=cuda"));
  CHECK_THAT(tc({"run", "-", "--machine=a100"}).problems,
             ContainsSubstring("it needs --backend=cuda"));
}

TEST_CASE("tc explains a machine that is not here by the model, and measures none", "[tc]") {
  const Ran a100 = tc({"explain", "-", "--machine=a100"});
  INFO(a100.problems);
  REQUIRE(a100.code == 0);
  CHECK_THAT(a100.out, ContainsSubstring("the ladder (by the model)") &&
                           ContainsSubstring("made for a100; nothing was run") &&
                           ContainsSubstring("us by the model, bound by ") &&
                           ContainsSubstring("program softmax on cuda for a100"));
  CHECK(tc({"explain", "-", "--machine=h200"}).out != a100.out);
  CHECK_THAT(tc({"explain", "-", "--machine=a100", "--json"}).out,
             ContainsSubstring("\"machine\": \"a100\", \"ran_on\": \"\""));
  CHECK_THAT(tc({"explain", "-"}).out,
             ContainsSubstring("made for and run on " + str(this_cpu())));
  CHECK_THAT(tc({"explain", "-", "--machine=a100", "--seed=2"}).problems,
             ContainsSubstring("--seed has no effect in tc explain --machine"));
  CHECK_THAT(tc({"explain", "-", "--machine=a100", "--backend=cpp"}).problems,
             ContainsSubstring("it needs --backend=cuda"));
  const Ran other = tc({"bench", "-", "--machine=cpu:4095"});
  CHECK(other.code == 1);
  CHECK_THAT(other.problems,
             ContainsSubstring("--machine=cpu:4095 is not what runs it here, ") &&
                 ContainsSubstring("tc explain --machine"));
  const std::string here = str("--machine=cpu:", this_cpu().cores);
  CHECK_THAT(tc({"bench", "-", here, "--until=lower"}).out, ContainsSubstring("\nlower "));
}

TEST_CASE("tc emits C++ and CUDA", "[tc]") {
  CHECK_THAT(tc({"emit", "-"}).out, ContainsSubstring("extern \"C\" void k_max_sub_exp"));
  CHECK_THAT(tc({"emit", "-", "--target=cuda"}).out,
             ContainsSubstring("extern \"C\" __global__ void") &&
                 ContainsSubstring("__shfl_xor_sync"));
  CHECK(tc({"emit", "-", "--target=fortran"}).code == 1);
}

TEST_CASE("tc explain names stages, launches and bytes, as text and as JSON", "[tc]") {
  const std::string text = tc({"explain", "-"}).out;
  CHECK_THAT(text, ContainsSubstring("fuse") && ContainsSubstring("launches"));
  const std::string json = tc({"explain", "-", "--json"}).out;
  for (const char* key : {"\"stages\"", "\"launches\"", "\"bytes\"", "\"milliseconds\"",
                          "\"compile_milliseconds\"", "\"refusals\""})
    CHECK_THAT(json, ContainsSubstring(key));
  CHECK_THAT(tc({"bench", "-"}).out, ContainsSubstring("plan_memory"));
}

TEST_CASE("tc explains and measures a program from where it stands", "[tc]") {
  const std::string program = tc({"print", "-", "--until=lower"}).out;
  const Ran ran = tc({"explain", "-"}, program);
  INFO(ran.problems);
  REQUIRE(ran.code == 0);
  CHECK_THAT(ran.out, ContainsSubstring("\nas given ") && ContainsSubstring("\nfuse ") &&
                          !ContainsSubstring("\ncse ") && !ContainsSubstring("== graph"));
  CHECK_THAT(tc({"bench", "-", "--until=fuse"}, program).out, ContainsSubstring("\nfuse "));
}

TEST_CASE("tc does not write where it cannot, and takes only numbers for numbers", "[tc]") {
  const Ran unwritable = tc({"run", "-", "--out", "/proc/no/such"});
  CHECK(unwritable.code == 1);
  CHECK_THAT(unwritable.problems, ContainsSubstring("/proc/no/such"));
  for (const char* seed : {"one", "1x", ""})
    CHECK_THAT(tc({"run", "-", std::string("--seed=") + seed}).problems,
               ContainsSubstring("--seed"));
}

TEST_CASE("tc reads and writes NumPy files", "[tc]") {
  const tests::Scratch scratch;
  const std::string in = scratch.path("x.npy"), out = scratch.path("out");
  std::vector<float> values(5 * 33, 1.0f);
  save_npy(in, from_vector(values, Sizes{5, 33}));
  REQUIRE(tc({"run", "-", "--in", in, "--out", out}).code == 0);
  const Tensor result = load_npy(out + "/0.npy");
  CHECK(result.shape() == Sizes{5, 33});
  CHECK(result.to_vector<float>()[7] == 1.0f / 33.0f);
  save_npy(in, from_vector(values, Sizes{33, 5}));
  const Ran wrong = tc({"run", "-", "--in", in});
  CHECK(wrong.code == 1);
  CHECK_THAT(wrong.problems, ContainsSubstring("f32[5,33]"));
  CHECK(tc({"run", "-", "--in", scratch.path("none.npy")}).code == 1);
}

TEST_CASE("tc ops lists every op of the table", "[tc]") {
  const std::string text = tc({"ops"}).out;
  for (int i = 0; i < kOpCount; i++)
    CHECK_THAT(text,
               ContainsSubstring(std::string("| ") + info(static_cast<Op>(i)).name + " "));
}

TEST_CASE("tc --help says what there is and exits with 0", "[tc]") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--help"}, {"-h"}, {"help"}, {"run", "--help"}}) {
    const Ran ran = tc(words);
    CHECK(ran.code == 0);
    CHECK_THAT(ran.out, ContainsSubstring("tc print|verify|run"));
    CHECK(ran.problems.empty());
  }
}

TEST_CASE("a file without an end is refused at once, wherever one is named", "[tc]") {
  for (const char* path : {"/dev/zero", "/dev/full", "/"}) {
    INFO(path);
    for (const std::vector<std::string>& words : {std::vector<std::string>{"run", path},
                                                  {"picture", "graph", path},
                                                  {"run", "-", "--in", path}}) {
      const Ran ran = tc(words);
      CHECK(ran.code == 1);
      CHECK_THAT(ran.problems, ContainsSubstring(std::string("cannot read ") + path));
    }
  }
  std::ifstream zeros("/dev/zero", std::ios::binary);
  std::ostringstream out, problems;
  CHECK(run_tc({"run", "-"}, zeros, out, problems) == 1);
  CHECK_THAT(problems.str(), ContainsSubstring("more than 256 MiB"));
}

TEST_CASE("a mistake exits with 1 and says what, where and what to do", "[tc]") {
  CHECK(tc({}).code == 1);
  CHECK_THAT(tc({"fly", "-"}).problems, ContainsSubstring("no command 'fly'"));
  CHECK_THAT(tc({"run"}).problems, ContainsSubstring("needs a FILE"));
  CHECK_THAT(tc({"run", "-", "--seeds=1"}).problems, ContainsSubstring("no option --seeds"));
  CHECK_THAT(tc({"run", "-", "--until=fold_twice"}).problems, ContainsSubstring("fold_twice"));
  CHECK_THAT(tc({"run", "-", "--backend=tpu"}).problems, ContainsSubstring("no backend 'tpu'"));
  CHECK_THAT(tc({"run", "/no/such.graph"}).problems, ContainsSubstring("/no/such.graph"));
  const Ran malformed =
      tc({"verify", "-"}, "graph g(%0 x: f32[2]) {\n  %1: f32[2] = expp %0\n}");
  CHECK(malformed.code == 1);
  CHECK_THAT(malformed.problems, ContainsSubstring("line 2") && ContainsSubstring("^") &&
                                     ContainsSubstring("did you mean 'exp'?"));
}

TEST_CASE("tc run names the op, line, value and size of an index out of range", "[tc]") {
  const std::string graph =
      "graph g(%0 x: f32[3]) {\n  %1: i64[1] = constant {value=7}\n  %2: f32[1] = gather %0, "
      "%1 "
      "{axis=0}  "
      "# mlp.cpp:14\n  return %2\n}";
  for (const char* backend : {"cpp", "eager", "interpreter"}) {
    const Ran ran = tc({"run", "-", std::string("--backend=") + backend}, graph);
    INFO(backend);
    CHECK(ran.code == 1);
    CHECK_THAT(ran.problems, ContainsSubstring("mlp.cpp:14") &&
                                 ContainsSubstring("gather: an index is out of range: 7 for "
                                                   "size 3"));
  }
  const std::string program =
      "program g {\n  input x: f32[3]\n  output y: f32[1]\n  kernel gather_1 rows(i0: 1) {  # "
      "mlp.cpp:14\n    store y[i0] = load x[at0; at0 = i64 7 < 3]\n  }\n  launch gather_1\n  "
      "return "
      "y\n}";
  CHECK_THAT(tc({"run", "-"}, program).problems,
             ContainsSubstring("out of range: in kernel gather_1 (mlp.cpp:14)"));
}

TEST_CASE("an option without an effect is refused, with where it has one", "[tc]") {
  for (const char* command : {"run", "explain", "bench", "verify"}) {
    const Ran ran = tc({command, "-", "--target=cuda"});
    CHECK(ran.code == 1);
    CHECK_THAT(ran.problems, ContainsSubstring("--target has no effect in tc " +
                                               std::string(command) + ", but in print emit"));
  }
  CHECK_THAT(tc({"run", "-", "--target=cuda"}).problems, ContainsSubstring("--backend"));
  CHECK_THAT(tc({"run", "-", "--matmul=library"}).problems,
             ContainsSubstring("--backend=cuda"));
  CHECK_THAT(tc({"run", "-", "--matmul=fast", "--backend=cuda"}).problems,
             ContainsSubstring("there are generated, library and tf32"));
  for (const char* option : {"--backend=cuda", "--against=interpreter", "--in=x.npy", "--json"})
    CHECK_THAT(tc({"emit", "-", option}).problems, ContainsSubstring("has no effect"));
  CHECK_THAT(tc({"ops", "--seed=1"}).problems, ContainsSubstring("has no effect in tc ops"));
  CHECK_THAT(tc({"picture", "tree", "--until=dce"}).problems,
             ContainsSubstring("has no effect in tc picture tree"));
  CHECK_THAT(tc({"picture", "cube", "--length=5"}).problems, ContainsSubstring("no picture"));
  CHECK_THAT(tc({"fly", "-", "--target=cuda"}).problems, ContainsSubstring("no command"));
}

TEST_CASE("explain and bench know no other backends than those that they measure", "[tc]") {
  for (const char* backend : {"interpreter", "tpu"})
    CHECK_THAT(tc({"explain", "-", std::string("--backend=") + backend}).problems,
               ContainsSubstring(std::string("no backend '") + backend));
  CHECK(tc({"bench", "-", "--backend=eager"}).code == 0);
}

TEST_CASE("the usage names each option under the commands that take it", "[tc]") {
  const std::string usage = tc({}).problems;
  CHECK_THAT(usage, ContainsSubstring("\n  print emit layout\n    --target=cpp|cuda "));
  CHECK_THAT(usage, ContainsSubstring("\n  explain bench\n    --json "));
  CHECK_THAT(usage, ContainsSubstring("\n    --seed=N ") && ContainsSubstring("--in FILE.npy"));
}

TEST_CASE("what needs numbers points at the symbolic size", "[tc][sizes]") {
  const std::string graph = "# rows\ngraph f[n: 1..9](%0 x: f32[n]) {\n  return %0\n}\n";
  const std::string program = "program f[n: 1..9] {\n  input x: f32[n]\n  return x\n}\n";
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"run", "-"},
                                             {"explain", "-"},
                                             {"bench", "-"},
                                             {"picture", "graph", "-"},
                                             {"picture", "passes", "-"},
                                             {"picture", "memory", "-"},
                                             {"picture", "layout", "-"},
                                             {"picture", "roofline", "-"}}) {
    CAPTURE(words);
    const std::string command = words[0] == "picture" ? "picture " + words[1] : words[0];
    const std::string reason =
        "tc " + command + " needs numbers for symbolic sizes: give --size n=NUMBER\n  ";
    const Ran ran = tc(words, graph);
    CHECK(ran.code == 1);
    CHECK_THAT(ran.problems,
               ContainsSubstring("line 2, column 9: " + reason +
                                 "graph f[n: 1..9](%0 x: f32[n]) {\n          ^"));
    if (words[0] == "picture") continue;
    CHECK_THAT(tc(words, program).problems,
               ContainsSubstring("line 1, column 11: " + reason +
                                 "program f[n: 1..9] {\n            ^"));
  }
  for (const char* command : {"print", "verify"}) CHECK(tc({command, "-"}, graph).code == 0);
}

TEST_CASE("a text with sizes is compiled for any of them", "[tc][sizes]") {
  const std::string graph =
      "graph f[n: 0..4096](%0 x: f32[n,3]) {\n  %1: f32[3] = sum %0 {axes=[0]}\n  return "
      "%1\n}\n";
  CHECK_THAT(tc({"emit", "-"}, graph).out,
             ContainsSubstring("const long long size_n = sizes[0];"));
  CHECK_THAT(tc({"emit", "-", "--target=cuda"}, graph).out,
             ContainsSubstring(", const int size_n)"));
  const std::string tiles = tc({"print", "-", "--target=cuda", "--until=tile"}, graph).out;
  CHECK_THAT(tiles, ContainsSubstring("tile sum_1 for n: 1..32 grid "));
  CHECK(tc({"print", "-"}, tiles).out == tiles);
  CHECK(tc({"run", "-", "--size", "n=37", "--backend=interpreter", "--against=interpreter"},
           tiles)
            .code == 0);
  for (const char* size : {"n=0", "n=1", "n=1025"}) {
    const Ran ran =
        tc({"run", "-", "--symbolic", "--size", size, "--against=interpreter"}, graph);
    CHECK_THAT(ran.out, ContainsSubstring("the same bits"));
    CHECK(ran.code == 0);
  }
  CHECK_THAT(tc({"run", "-", "--symbolic", "--size", "n=5000"}, graph).problems,
             ContainsSubstring("n is 5000, which is not in 0..4096"));
  CHECK(tc({"run", "-", "--symbolic", "--size", "n=5", "--backend=eager"}, graph).code == 0);
  CHECK_THAT(
      tc({"run", "-", "--symbolic"}, graph).problems,
      ContainsSubstring("tc run needs numbers for symbolic sizes: give --size n=NUMBER"));
}

TEST_CASE("a size that does not fit the graph is an error, with its number", "[tc][sizes]") {
  const std::string graph =
      "graph f[n: 1..9](%0 x: f32[n]) {\n"
      "  %1: f32[n - 2,3] = window %0 {axis=0, step=1, size=3}\n  return %1\n}\n";
  CHECK_THAT(
      tc({"run", "-", "--size", "n=2"}, graph).problems,
      ContainsSubstring("for n = 2: window: a window of 3 does not fit 1..2; pad first"));
  CHECK(tc({"run", "-", "--size", "n=3"}, graph).code == 0);
}

TEST_CASE("an edited tile is obeyed, and stays as it is", "[tc][tile]") {
  const std::string graph =
      "graph f(%0 x: f32[6,16,40]) {\n  %1: f32[6,1,40] = sum %0 {axes=[1], keepdim=1}\n"
      "  return %1\n}\n";
  const std::string tiles = tc({"print", "-", "--until=tile", "--target=cuda"}, graph).out;
  CHECK_THAT(tiles, ContainsSubstring("program f on cuda {") && ContainsSubstring("\ntile "));
  CHECK(tc({"print", "-"}, tiles).out == tiles);
  CHECK(tc({"print", "-", "--until=tile"}, tiles).out == tiles);
  CHECK(tc({"emit", "-"}, tiles).out == tc({"emit", "-", "--target=cuda"}, graph).out);
  CHECK(tc({"run", "-", "--backend=interpreter", "--against=interpreter"}, tiles).code == 0);

  const size_t at = tiles.find(" = add(");
  REQUIRE(at != std::string::npos);
  const std::string edited = std::string(tiles).replace(at, 7, " = sub(");
  CHECK(tc({"emit", "-"}, edited).out != tc({"emit", "-"}, tiles).out);
  CHECK(tc({"run", "-", "--backend=interpreter", "--against=interpreter"}, edited).code == 2);
  CHECK_THAT(tc({"emit", "-", "--target=cpp", "--machine=cpu:16"}, tiles).problems,
             ContainsSubstring("tiles are for a GPU"));
  CHECK_THAT(tc({"verify", "-"}, tiles + "tile q").problems,
             ContainsSubstring("no kernel 'q' is declared above"));
  CHECK_THAT(tc({"verify", "-"}, tiles + tiles.substr(tiles.find("\ntile "))).problems,
             ContainsSubstring("a second tile of "));
}

TEST_CASE("an edited tile of a CPU is obeyed, and is for one", "[tc][tile]") {
  const std::string graph =
      "graph f(%0 x: f32[6,40]) {\n  %1: f32[6,40] = exp %0\n  return %1\n}\n";
  const std::string tiles = tc({"print", "-", "--until=tile", "--target=cpp"}, graph).out;
  CHECK_THAT(tiles, ContainsSubstring("\ntile exp_1 units 240 grain "));
  CHECK(tc({"print", "-"}, tiles).out == tiles);
  CHECK(tc({"emit", "-"}, tiles).out == tc({"emit", "-", "--target=cpp"}, graph).out);
  CHECK(tc({"run", "-", "--backend=cpp", "--against=interpreter"}, tiles).code == 0);
  CHECK(tc({"explain", "-", "--machine=cpu:16"}, tiles).code == 0);

  const size_t at = tiles.rfind(" = exp(");
  REQUIRE(at > tiles.find("\ntile "));
  const std::string edited = std::string(tiles).replace(at, 7, " = neg(");
  CHECK(tc({"run", "-", "--backend=interpreter", "--against=interpreter"}, edited).code == 2);
  CHECK(tc({"run", "-", "--backend=cpp"}, edited).out !=
        tc({"run", "-", "--backend=cpp"}, tiles).out);
  CHECK_THAT(tc({"emit", "-", "--target=cuda"}, tiles).problems,
             ContainsSubstring("tiles are for a CPU"));
}

TEST_CASE("tc explain says of tiles what it says of their schedules, and bench times them",
          "[tc][tile]") {
  const std::string graph =
      "graph f(%0 x: f32[6,16,40]) {\n  %1: f32[6,1,40] = sum %0 {axes=[1], keepdim=1}\n"
      "  return %1\n}\n";
  const std::string tiles = tc({"print", "-", "--until=tile", "--machine=h200"}, graph).out;
  const std::string program = tiles.substr(0, tiles.find("\ntile "));
  const Ran ran = tc({"explain", "-", "--machine=h200"}, tiles);
  CHECK(ran.code == 0);
  const auto section = [](const std::string& text) {
    const size_t at = text.find("== schedules");
    return text.substr(at, text.find("== program") - at);
  };
  CHECK(section(ran.out) == section(tc({"explain", "-", "--machine=h200"}, program).out));
  CHECK_THAT(ran.out, ContainsSubstring("\nas given ") && ContainsSubstring("\nemit ") &&
                          !ContainsSubstring("\nschedule ") &&
                          ContainsSubstring("\n== program\n" + tiles + "\n== source"));

  const size_t at = tiles.find(" = add(");
  REQUIRE(at != std::string::npos);
  const std::string edited = std::string(tiles).replace(at, 7, " = sub(");
  const std::string other = "tile: not the one that this schedule makes";
  const Ran of_edited = tc({"explain", "-", "--machine=h200"}, edited);
  CHECK_THAT(of_edited.out, ContainsSubstring(other) && ContainsSubstring(" = sub("));
  CHECK_THAT(tc({"explain", "-", "--machine=h200", "--json"}, edited).out,
             ContainsSubstring("\"" + other + "\""));

  for (const char* command : {"explain", "bench"}) {
    CHECK_THAT(tc({command, "-", "--backend=cpp"}, tiles).problems,
               ContainsSubstring("tiles are for a GPU"));
    const Ran here = tc({command, "-", "--until=tile"}, tiles);
    if (why_no_gpu().empty())
      CHECK_THAT(here.out, ContainsSubstring("\nas given "));
    else
      CHECK_THAT(here.problems, ContainsSubstring("no GPU can be used"));
  }
  CHECK_THAT(tc({"explain", "-", "--machine=cpu:16"}, tiles).problems,
             ContainsSubstring("tiles are for a GPU, which cpu:16 is not"));
}

TEST_CASE("tc tune prints and writes a program that runs with the same bits", "[tc][tune]") {
  const tests::Scratch scratch;
  const tests::Setting cache("TC_CACHE_DIR", scratch.path("."));
  const Ran tuned = tc({"tune", "-", "--seconds=1", "--out", scratch.path("made")});
  INFO(tuned.problems);
  REQUIRE(tuned.code == 0);
  CHECK_THAT(tuned.out, ContainsSubstring("the fastest of "));
  CHECK_THAT(tuned.out, ContainsSubstring("    schedule "));
  CHECK(tests::text_of(scratch.path("made/softmax.program")) == tuned.out);
  CHECK_THAT(tc({"run", "-", "--against=interpreter"}, tuned.out).out,
             ContainsSubstring("the same bits"));
  CHECK_THAT(tc({"tune", "-", "--seconds=1"}).out, ContainsSubstring(", remembered"));
}

TEST_CASE("tc tune says what it cannot tune", "[tc][tune]") {
  CHECK_THAT(tc({"tune", "-", "--backend=eager"}).problems, ContainsSubstring("cpp and cuda"));
  CHECK_THAT(tc({"tune", "-", "--seconds=x"}).problems, ContainsSubstring("no number"));
  CHECK_THAT(tc({"run", "-", "--seconds=1"}).problems,
             ContainsSubstring("no effect in tc run"));
}
