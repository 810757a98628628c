#include "tiny_compile/runtime/log.h"

#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

// What a process of its own writes to stderr while it compiles a function for two shapes.
struct Session {
  std::string words(const char* logs, const std::string& debug = "") {
    const std::string file = scratch.path("words");
    code = in_child([&] {
      const Setting cache("TC_CACHE_DIR", scratch.path("cache")), channels("TC_LOGS", logs),
          texts("TC_DEBUG_DIR", debug.empty() ? nullptr : debug.c_str());
      dup2(open(file.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600), 2);
      const auto f = tiny_compile::compile([](Tensor x) { return (x + x).sum() + x.max(); },
                                           {.name = "traced"});
      return f(ones({4})).item<float>() == 9 && f(ones({6})).item<float>() == 13 ? 0 : 1;
    });
    return text_of(file);
  }

  Scratch scratch;
  int code = -1;
};

}  // namespace

TEST_CASE("without TC_LOGS nothing is said", "[log]") {
  Session session;
  CHECK(session.words(nullptr).empty());
  CHECK(session.code == 0);
  CHECK(session.words("").empty());
}

TEST_CASE("each channel says its own and nothing else", "[log]") {
  const std::pair<const char*, const char*> promises[] = {
      {"cache", "miss "},
      {"graph", "graph traced(%0"},
      {"passes", "after simplify:"},
      {"fusion", "after fuse:"},
      {"loops", "after lower:"},
      {"schedule", "after schedule:"},
      {"memory", "after plan_memory:"},
      {"code", "extern \"C\" void"},
      {"guards", "traced: tensor 0 is f32[4]"},
      {"recompiles", "shape [4] -> [6]"}};
  Session session;
  for (const auto& [channel, promise] : promises) {
    const std::string words = session.words(channel);
    INFO(channel);
    CHECK(session.code == 0);
    CHECK_THAT(words, ContainsSubstring("[" + std::string(channel) + "] ") &&
                          ContainsSubstring(promise));
    for (const auto& [other, unused] : promises) {
      if (std::string(other) != channel)
        CHECK(words.find("[" + std::string(other) + "] ") == std::string::npos);
    }
  }
}

TEST_CASE("channels are listed with commas", "[log]") {
  Session session;
  const std::string words = session.words("recompiles,,guards");
  CHECK_THAT(words, ContainsSubstring("[recompiles]") && ContainsSubstring("[guards]"));
  CHECK(words.find("TC_LOGS:") == std::string::npos);
}

TEST_CASE("an unknown channel is named once, with those there are", "[log]") {
  Session session;
  const std::string words = session.words("fusoin,guards");
  CHECK(session.code == 0);
  CHECK_THAT(words,
             ContainsSubstring("TC_LOGS: no channel 'fusoin'; there are graph,passes,"
                               "fusion,loops,schedule,memory,tile,code,guards,recompiles,"
                               "cache,autotune\n"));
  CHECK(words.find("fusoin") == words.rfind("fusoin"));
  CHECK_THAT(words, ContainsSubstring("[guards]"));
}

TEST_CASE("TC_DEBUG_DIR gets a file of every stage of every graph", "[log]") {
  Session session;
  const std::string directory = session.scratch.path("it's \"debug\"");
  CHECK(session.words(nullptr, directory).empty());
  CHECK(session.code == 0);
  for (const char* stage :
       {"0_trace", "1_simplify", "2_fold", "3_cse", "4_dce", "5_lower", "6_fuse",
        "7_fold_columns", "8_schedule", "9_plan_memory", "10_tile", "11_emit"}) {
    size_t files = 0;
    for (const auto& item : std::filesystem::directory_iterator(directory)) {
      const std::string name = item.path().filename();
      const std::string end = std::string("_") + stage + ".txt";
      if (name.size() < end.size() || name.substr(name.size() - end.size()) != end) continue;
      files++;
      CHECK(name.rfind("traced_", 0) == 0);
      CHECK_FALSE(text_of(item.path()).empty());
    }
    INFO(stage);
    CHECK(files == 2);
  }
  CHECK(count_in(directory) == 26);  // and the source of each
}

TEST_CASE("a TC_DEBUG_DIR that cannot be written to is told and changes no result", "[log]") {
  Session session;
  CHECK_THAT(session.words(nullptr, "/proc/nowhere"),
             ContainsSubstring("TC_DEBUG_DIR: cannot write /proc/nowhere/"));
  CHECK(session.code == 0);
}

TEST_CASE("a full disk under TC_DEBUG_DIR is told and changes no result", "[log]") {
  Session session;
  const std::string directory = session.scratch.path("small");
  mkdir(directory.c_str(), 0700);
  const std::string file = session.scratch.path("outer");
  const int code = in_child([&] {
    if (!mount_small(directory, "size=8k,mode=700")) return kNotAllowed;
    const std::string words = session.words(nullptr, directory);
    write_text(file, words);
    return session.code;
  });
  if (code == kNotAllowed) SKIP("this user may not mount");
  CHECK(code == 0);
  CHECK_THAT(text_of(file), ContainsSubstring("No space left on device"));
}

TEST_CASE("a closed stderr changes no result", "[log]") {
  const Scratch scratch;
  CHECK(in_child([&] {
          const Setting cache("TC_CACHE_DIR", scratch.path("cache")),
              channels("TC_LOGS", "graph,cache,fusoin");
          close(2);
          const auto f = tiny_compile::compile([](Tensor x) { return x * x; });
          return f(ones({4})).to_vector<float>() == std::vector<float>(4, 1.0f) ? 0 : 1;
        }) == 0);
}

TEST_CASE("lines of a source are numbered, one of them marked", "[log]") {
  const std::string source = "a\nb\n\nd\ne";
  CHECK(numbered_lines(source, 2, 4, 3) == "  2 | b\n> 3 | \n  4 | d\n");
  CHECK(numbered_lines(source, 4, 9) == "  4 | d\n  5 | e\n");
  CHECK(numbered_lines(source, 6, 9, 7) == "");
  CHECK(numbered_lines("", 1, 3) == "");
}
