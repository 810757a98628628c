// What is proved of an exercise, and how an answer that goes wrong is told.
#include "tests/lessons/tools.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

ProcessResult exercise(std::vector<std::string> words) {
  words.insert(words.begin(), tool("exercise"));
  return run_process(words, "", 60);
}

}  // namespace

TEST_CASE("a case that crashes, never ends or takes all memory is told and harms no other",
          "[lessons]") {
  if (std::getenv("TC_CXXFLAGS")) SKIP("sanitizers tell of crashes in words of their own");
  const ProcessResult result =
      run_process({tool("check_fixture")}, "", 120, {"TC_CHECK_SECONDS=1"});
  CHECK(result.exit_code == 1);
  const std::string& said = result.output;
  INFO(said);
  CHECK_THAT(said,
             ContainsSubstring("  ok    passes and prints\n        looking\n        score: "
                               "kernels 3, par 2\n"));
  CHECK_THAT(said,
             ContainsSubstring("  FAIL  fails with a sentence\n        x is 4, not 5\n  FAIL"));
  CHECK_THAT(said, ContainsSubstring("CHECK( two + 2 == 5 )\n        is  4 == 5\n"));
  CHECK_THAT(said, ContainsSubstring("no such node"));
  CHECK_THAT(said, ContainsSubstring("about to read\n"));
  CHECK_THAT(said, ContainsSubstring("signal 11"));
  CHECK_THAT(said, ContainsSubstring("you wrote to element 7 of an array of 7"));
  CHECK_THAT(said, ContainsSubstring("  FAIL  takes all memory\n"));
  CHECK_THAT(said, ContainsSubstring("  FAIL  never ends\n        stopped after 1 s:"));
  CHECK_THAT(said, !ContainsSubstring("comes after it"));
}

TEST_CASE("a start must fail and a solution pass", "[lessons]") {
  const Scratch scratch;
  const std::string passes = program(scratch, "passes", "  ok    a\n", 0),
                    fails = program(scratch, "fails", "  FAIL  a\n", 1);
  CHECK(exercise({"prove", passes, "solution.cpp"}).exit_code == 0);
  CHECK(exercise({"prove", fails, "solution.cpp"}).exit_code == 1);
  CHECK(exercise({"prove", fails, "start.cpp"}).exit_code == 0);
  CHECK(exercise({"prove", passes, "start.cpp"}).exit_code == 1);
}

TEST_CASE("a wrong answer must fail in the case it names", "[lessons]") {
  const Scratch scratch;
  const std::string passes = program(scratch, "passes", "  ok    a\n", 0),
                    fails = program(scratch, "fails", "  ok    b\n  FAIL  a\n", 1),
                    names_a = write(scratch, "wrong_1.cpp", "// fails: a\n"),
                    names_b = write(scratch, "wrong_2.cpp", "// fails: b\n"),
                    names_none = write(scratch, "wrong_3.cpp", "int x;\n");
  CHECK(exercise({"prove", fails, names_a}).exit_code == 0);
  CHECK(exercise({"prove", passes, names_a}).exit_code == 1);
  CHECK_THAT(exercise({"prove", fails, names_b}).output,
             ContainsSubstring("must fail in \"b\""));
  CHECK_THAT(exercise({"prove", fails, names_none}).output, ContainsSubstring("first line"));
}

TEST_CASE("an exercise has its title, one TODO, three hints and two wrong answers",
          "[lessons]") {
  const Scratch scratch;
  const std::string at = "07_x/exercise_2/";
  const std::string directory = scratch.path("07_x/exercise_2");
  const std::string hint = "<details><summary>Hint</summary>\nlook\n</details>\n";
  write(scratch, at + "exercise.h", "// 07-2 ★ A title\n");
  write(scratch, at + "start.cpp", "// TODO: all\n");
  write(scratch, at + "solution.cpp", "int x;\n");
  write(scratch, at + "hints.md", hint + hint + hint);
  write(scratch, at + "wrong_a.cpp", "// fails: a\n");
  CHECK_THAT(exercise({"form", directory}).output, ContainsSubstring("two wrong_*.cpp"));
  write(scratch, at + "wrong_b.cpp", "// fails: a\n");
  CHECK(exercise({"form", directory}).output == "");
  write(scratch, at + "exercise.h", "// 07-1 ★ A title\n");
  CHECK_THAT(exercise({"form", directory}).output, ContainsSubstring("07-2 ★"));
}

TEST_CASE("start copies once and hints come one at a time", "[lessons]") {
  const Scratch scratch;
  const std::string directory = scratch.path("07_x/exercise_2");
  write(scratch, "07_x/exercise_2/exercise.h", "// 07-2 ★ A title\n");
  write(scratch, "07_x/exercise_2/start.cpp", "start\n");
  const std::string mine = directory + "/mine.cpp", state = scratch.path("state/hints");
  write(scratch, "07_x/exercise_2/hints.md",
        "<details>\nfirst\n</details>\n<details>\nsecond\n</details>\n");
  CHECK_THAT(exercise({"start", directory}).output, ContainsSubstring("07-2 ★ A title"));
  REQUIRE(std::filesystem::exists(mine));
  write(scratch, "07_x/exercise_2/mine.cpp", "changed\n");
  exercise({"start", directory});
  CHECK(std::filesystem::file_size(mine) == 8);
  CHECK_THAT(exercise({"hint", directory, state}).output, ContainsSubstring("first"));
  CHECK_THAT(exercise({"hint", directory, state}).output, ContainsSubstring("second"));
  CHECK_THAT(exercise({"hint", directory, state}).output, ContainsSubstring("hint 2 of 2"));
}
