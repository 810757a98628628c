#include "tiny_compile/runtime/cpp_toolchain.h"

#include <algorithm>
#include <vector>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"
#include "tiny_compile/runtime/process.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string answering(int number) {
  return "extern \"C\" int answer() { return " + std::to_string(number) + "; }\n";
}

int answer_of(const BuiltLibrary& built) {
  return reinterpret_cast<int (*)()>(built.library->symbol("answer"))();
}

// A cache and a compiler of the test's own. The compiler is a script, so that a test can make
// it count, wait, lie or fail; $real is the machine's.
struct Bench {
  Bench() : real(default_toolchain().compiler) { script("exec \"$real\" \"$@\""); }

  void script(const std::string& text) const {
    write_program(compiler, "real='" + real + "'\necho run >> '" + calls + "'\n" + text + "\n");
  }
  // `text` can use $out, the file the compiler was to write.
  void script_with_output(const std::string& text) const {
    script("for word; do [ \"$before\" = -o ] && out=$word; before=$word; done\n" + text);
  }
  BuiltLibrary build(int number) const {
    return build_cpp(answering(number), default_toolchain());
  }
  std::string message(int number = 1) const {
    return message_of([&] { build(number); });
  }
  size_t runs() const { return text_of(calls).size() / 4; }
  size_t files() const { return std::filesystem::exists(cache) ? count_in(cache) : 0; }
  std::string entry() const {
    for (const auto& item : std::filesystem::directory_iterator(cache))
      return item.path().string();
    return "";
  }

  Setting plain_cxx{"TC_CXX", nullptr}, no_flags{"TC_CXXFLAGS", nullptr},
      unbounded{"TC_CACHE_BYTES", nullptr};
  std::string real;
  Scratch scratch;
  std::string compiler = scratch.path("compiler"), calls = scratch.path("calls"),
              cache = scratch.path("cache");
  Setting cxx{"TC_CXX", compiler}, directory{"TC_CACHE_DIR", cache};
};

}  // namespace

TEST_CASE("source becomes a library, and the same source again is taken from the disk",
          "[toolchain]") {
  const Bench bench;
  const BuiltLibrary first = bench.build(1), again = bench.build(1), other = bench.build(2);
  CHECK_FALSE(first.from_cache);
  CHECK(first.compile_seconds > 0);
  CHECK(again.from_cache);
  CHECK_FALSE(other.from_cache);
  CHECK(answer_of(first) == 1);
  CHECK(answer_of(again) == 1);
  CHECK(answer_of(other) == 2);
  CHECK(bench.runs() == 2);
  CHECK(bench.files() == 2);
}

TEST_CASE("a second process runs no compiler", "[toolchain]") {
  const Bench bench;
  for (int process = 0; process < 3; process++)
    CHECK(in_child([&] { return answer_of(bench.build(7)); }) == 7);
  CHECK(bench.runs() == 1);
}

TEST_CASE("other flags or another compiler make another entry", "[toolchain]") {
  const Bench bench;
  bench.build(1);
  {
    const Setting flags("TC_CXXFLAGS", "-DEXTRA=1");
    CHECK_FALSE(bench.build(1).from_cache);
  }
  CHECK(bench.build(1).from_cache);
  bench.script("# updated\nexec \"$real\" \"$@\"");
  CHECK_FALSE(bench.build(1).from_cache);
}

TEST_CASE("a compiler's variable may hold its flags, and its path spaces and quotes",
          "[toolchain]") {
  const Bench bench;
  {
    const Setting cxx("TC_CXX", bench.compiler + " -DNUMBER=5");
    CHECK(answer_of(build_cpp("extern \"C\" int answer() { return NUMBER; }",
                              default_toolchain())) == 5);
  }
  const std::string place = bench.scratch.path("it's a \"dir\" $(of) mine");
  mkdir(place.c_str(), 0700);
  std::filesystem::copy(bench.compiler, place + "/my c++");
  const Setting cxx("TC_CXX", place + "/my c++"), cache("TC_CACHE_DIR", place + "/c a c h e");
  CHECK(answer_of(bench.build(6)) == 6);
  CHECK(bench.build(6).from_cache);
}

// Whose flags the compiler is given depends on it: without g++'s, g++ does not vectorise a clamp.
TEST_CASE("g++ is known behind a wrapper, and clang++ is not g++", "[toolchain]") {
  const Scratch scratch;
  const auto knows = [&](const std::string& command) {
    const Setting cxx("TC_CXX", scratch.path(command));
    const std::vector<std::string> flags = default_toolchain().flags;
    return std::find(flags.begin(), flags.end(), "-fno-thread-jumps") != flags.end();
  };
  for (const char* name : {"g++", "x86_64-linux-gnu-g++-12", "clang++", "wrap"})
    write_program(scratch.path(name), "exit 0\n");
  std::filesystem::create_symlink(scratch.path("g++"), scratch.path("c++"));
  CHECK(knows("g++"));
  CHECK(knows("x86_64-linux-gnu-g++-12"));
  CHECK(knows("c++"));
  CHECK(knows("wrap g++"));
  CHECK_FALSE(knows("clang++"));
  CHECK_FALSE(knows("wrap"));
}

TEST_CASE("an absent compiler is an error that says where it was named and what to do",
          "[toolchain]") {
  const Bench bench;
  {
    const Setting cxx("TC_CXX", "/nowhere/c++");
    CHECK_THAT(bench.message(),
               ContainsSubstring("no C++ compiler '/nowhere/c++' (from $TC_CXX)") &&
                   ContainsSubstring("install it"));
  }
  const Setting none("TC_CXX", nullptr);
  {
    const Setting cxx("CXX", "absent-c++");
    CHECK_THAT(bench.message(), ContainsSubstring("'absent-c++' (from $CXX)"));
  }
  const Setting cxx("CXX", nullptr), path("PATH", bench.scratch.path("empty"));
  CHECK_THAT(bench.message(), ContainsSubstring("no C++ compiler on PATH") &&
                                  ContainsSubstring("install g++ or clang++"));
  CHECK(bench.files() == 0);
}

TEST_CASE("a compiler that fails is quoted, with the lines it complains of", "[toolchain]") {
  const Bench bench;
  const Setting debug("TC_DEBUG_DIR", bench.scratch.path("debug"));
  const std::string source = "int one;\nint two;\nint three = nonsense;\nint four;\n";
  const std::string message = message_of([&] { build_cpp(source, default_toolchain()); });
  CHECK_THAT(message, ContainsSubstring("the C++ compiler failed (" + bench.compiler) &&
                          ContainsSubstring("exit code 1") && ContainsSubstring("nonsense") &&
                          ContainsSubstring("error:"));
  CHECK_THAT(message, ContainsSubstring("  2 | int two;\n> 3 | int three = nonsense;\n"));
  CHECK_THAT(message, ContainsSubstring("TC_DEBUG_DIR"));
  CHECK(text_of(bench.scratch.path("debug/failed.cpp")) == source);
  CHECK(bench.files() == 0);
}

TEST_CASE("a compiler's words are read in English, whatever the user's language",
          "[toolchain]") {
  const Bench bench;
  const Setting language("LC_ALL", "de_DE.UTF-8");
  bench.script("echo \"<stdin>:1:1: error: in $LC_ALL\"; exit 1");
  CHECK_THAT(bench.message(), ContainsSubstring("in C\n"));
}

TEST_CASE("a compiler that hangs is stopped at the time limit", "[toolchain]") {
  const Bench bench;
  bench.script("sleep 60");
  CppToolchain toolchain = default_toolchain();
  CHECK(toolchain.timeout_seconds >= 60);
  toolchain.timeout_seconds = 0.2;
  CHECK_THAT(message_of([&] { build_cpp(answering(1), toolchain); }),
             ContainsSubstring("no end in 0.2 seconds"));
  CHECK(bench.files() == 0);
}

TEST_CASE("a compiler that a signal ends is an error", "[toolchain]") {
  const Bench bench;
  bench.script("kill -9 $$");
  CHECK_THAT(bench.message(), ContainsSubstring("killed by signal 9"));
  CHECK(bench.files() == 0);
}

TEST_CASE("a compiler without memory is an error", "[toolchain]") {
  const Bench bench;
  bench.script("ulimit -v 30000; exec \"$real\" \"$@\"");
  CHECK_THAT(bench.message(), ContainsSubstring("the C++ compiler failed"));
  CHECK(bench.files() == 0);
}

TEST_CASE("what a lying compiler leaves is not loaded", "[toolchain]") {
  const Bench bench;
  const std::string compile = "\"$real\" \"$@\" && ";
  for (const std::string& lie :
       {std::string("true"), std::string("rm \"$out\""), std::string(": > \"$out\""),
        std::string("echo hello > \"$out\""), std::string("truncate -s 20 \"$out\""),
        std::string("truncate -s 64 \"$out\""), std::string("truncate -s 1000 \"$out\""),
        std::string("truncate -s 4096 \"$out\""), std::string("truncate -s -1 \"$out\"")}) {
    INFO(lie);
    bench.script_with_output((lie == "true" ? "" : compile) + lie);
    CHECK_THAT(bench.message(), ContainsSubstring("no whole library"));
    CHECK(bench.files() == 0);
  }
  bench.script("exec \"$real\" \"$@\"");
  CHECK(answer_of(bench.build(1)) == 1);
}

TEST_CASE("a library without the kernel asked for is an error", "[toolchain]") {
  const Bench bench;
  const BuiltLibrary built =
      build_cpp("extern \"C\" int other() { return 1; }", default_toolchain());
  CHECK_THAT(message_of([&] { answer_of(built); }),
             ContainsSubstring("compiled kernels lack 'answer'"));
}

TEST_CASE("a library that needs what is not there does not load", "[toolchain]") {
  const Bench bench;
  CHECK_THAT(message_of([&] {
               build_cpp("void absent(); extern \"C\" int answer() { absent(); return 1; }",
                         default_toolchain());
             }),
             ContainsSubstring("cannot load compiled kernels") && ContainsSubstring("absent"));
  CHECK(bench.files() == 0);
}

TEST_CASE("a cache that cannot be used costs the cache only", "[toolchain]") {
  const Bench bench;
  SECTION("a file in its place") { write_text(bench.cache, "in the way"); }
  SECTION("a place that nobody can make") {
    setenv("TC_CACHE_DIR", "/proc/tiny_compile/cache", 1);
  }
  SECTION("a world-writable directory") {
    mkdir(bench.cache.c_str(), 0700);
    chmod(bench.cache.c_str(), 0777);
  }
  for (int run = 1; run <= 2; run++) {
    const BuiltLibrary built = bench.build(1);
    CHECK_FALSE(built.from_cache);
    CHECK(answer_of(built) == 1);
  }
  CHECK(bench.runs() == 2);
}

TEST_CASE("without a home nothing is kept, and all works", "[toolchain]") {
  const Bench bench;
  const Setting chosen("TC_CACHE_DIR", nullptr), xdg("XDG_CACHE_HOME", nullptr),
      home("HOME", nullptr);
  CHECK(answer_of(bench.build(1)) == 1);
  CHECK(answer_of(bench.build(1)) == 1);
  CHECK(bench.runs() == 2);
}

TEST_CASE("a bound of zero bytes costs the cache only", "[toolchain]") {
  const Bench bench;
  const Setting bound("TC_CACHE_BYTES", "0");
  CHECK(answer_of(bench.build(1)) == 1);
  CHECK(answer_of(bench.build(1)) == 1);
  CHECK(bench.runs() == 2);
}

TEST_CASE("a damaged entry is compiled again", "[toolchain]") {
  const Bench bench;
  in_child([&] { return answer_of(bench.build(1)); });
  const std::string whole = text_of(bench.entry());
  SECTION("a flipped bit") {
    std::string flipped = whole;
    flipped[whole.size() / 2] ^= 1;
    write_text(bench.entry(), flipped);
  }
  SECTION("cut short") { write_text(bench.entry(), whole.substr(0, whole.size() / 2)); }
  SECTION("empty") { write_text(bench.entry(), ""); }
  CHECK(answer_of(bench.build(1)) == 1);
  CHECK(bench.runs() == 2);
  CHECK(bench.build(1).from_cache);
}

TEST_CASE("somebody else's entry is compiled again", "[toolchain]") {
  const Bench bench;
  in_child([&] { return answer_of(bench.build(1)); });
  if (chown(bench.entry().c_str(), 12345, 12345) != 0) SKIP("only root gives files away");
  CHECK(answer_of(bench.build(1)) == 1);
  CHECK(bench.runs() == 2);
}

TEST_CASE("a file that is no library does not load", "[toolchain]") {
  const Scratch scratch;
  write_text(scratch.path("text"), "whole, and no library");
  CHECK_THAT(
      message_of([&] { SharedLibrary(scratch.path("text")); }),
      ContainsSubstring("cannot load compiled kernels") && ContainsSubstring("TC_CACHE_DIR"));
}

TEST_CASE("eight processes that compile the same at once all get it right", "[toolchain]") {
  const Bench bench;
  std::vector<Child> children;
  for (int p = 0; p < 8; p++) children.emplace_back([&] { return answer_of(bench.build(3)); });
  for (const Child& child : children) CHECK(child.wait() == 3);
  CHECK(bench.files() == 1);
  CHECK(bench.build(3).from_cache);
}

TEST_CASE("kill -9 while the compiler runs leaves nothing that a later run trips over",
          "[toolchain]") {
  const Bench bench;
  const std::string started = bench.scratch.path("started"), go = bench.scratch.path("go");
  bench.script("echo $$ > '" + started + ".new'; mv '" + started + ".new' '" + started +
               "'; while [ ! -e '" + go + "' ]; do sleep 0.01; done; exec \"$real\" \"$@\"");
  const Child child([&] { return answer_of(bench.build(4)); });
  for (int i = 0; i < 1000 && !std::filesystem::exists(started); i++) usleep(5000);
  kill(child.pid(), SIGKILL);
  CHECK(child.wait() == 128 + SIGKILL);
  write_text(go, "");
  CHECK(answer_of(bench.build(4)) == 4);
  CHECK(bench.build(4).from_cache);
}

TEST_CASE("a full disk under the cache: another place is taken", "[toolchain]") {
  const Bench bench;
  mkdir(bench.cache.c_str(), 0700);
  const int code = in_child([&] {
    if (!mount_small(bench.cache, "size=4k,mode=700")) return kNotAllowed;
    return answer_of(bench.build(5)) == 5 && bench.files() == 0 ? 0 : 1;
  });
  if (code == kNotAllowed) SKIP("this user may not mount");
  CHECK(code == 0);
}

TEST_CASE("all disks full is an error that says which", "[toolchain]") {
  const Bench bench;
  mkdir(bench.cache.c_str(), 0700);
  const int code = in_child([&] {
    const Setting temporary("TMPDIR", nullptr), cxx("TC_CXX", bench.real);
    for (const std::string& place :
         {bench.cache, std::string("/dev/shm"), std::string("/tmp")}) {
      if (!mount_small(place, "size=4k,mode=1777")) return kNotAllowed;
    }
    const std::string message = bench.message();
    return message.find("free some space") != std::string::npos ? 0 : 1;
  });
  if (code == kNotAllowed) SKIP("this user may not mount");
  CHECK(code == 0);
}

TEST_CASE("a linker that a full disk ends by SIGBUS is not blamed: another place is taken",
          "[toolchain]") {
  const Bench bench;
  const Setting temporary("TMPDIR", nullptr);
  bench.script_with_output("case $out in '" + bench.cache + "'*) kill -BUS $$;; esac\n" +
                           "exec \"$real\" \"$@\"");
  CHECK(answer_of(bench.build(3)) == 3);
  bench.script_with_output(
      "case $out in '" + bench.cache + "'*) echo 'collect2: fatal error: " +
      "ld terminated with signal 7 [Bus error]'; exit 1;; esac\n" + "exec \"$real\" \"$@\"");
  CHECK(answer_of(bench.build(4)) == 4);
  CHECK(bench.files() == 0);
  bench.script("kill -BUS $$");
  CHECK_THAT(bench.message(), ContainsSubstring("no place for compiled kernels") &&
                                  ContainsSubstring("free some space") &&
                                  ContainsSubstring(bench.compiler) &&
                                  ContainsSubstring("killed by signal 7"));
}

TEST_CASE("a library that a full disk cut short is made in another place", "[toolchain]") {
  const Bench bench;
  mkdir(bench.cache.c_str(), 0700);
  bench.script_with_output("\"$real\" \"$@\"\ncase $out in '" + bench.cache +
                           "'*) truncate -s 4096 \"$out\"; head -c 9999999 /dev/zero > "
                           "\"$out.rest\" 2> /dev/null; exit 0;; esac");
  const int code = in_child([&] {
    if (!mount_small(bench.cache, "size=2m,mode=700")) return kNotAllowed;
    return answer_of(bench.build(5)) == 5 && bench.files() == 0 ? 0 : 1;
  });
  if (code == kNotAllowed) SKIP("this user may not mount");
  CHECK(code == 0);
}

TEST_CASE("a mistake on a full disk is still the compiler's to tell", "[toolchain]") {
  const Bench bench;
  mkdir(bench.cache.c_str(), 0700);
  const int code = in_child([&] {
    if (!mount_small(bench.cache, "size=64k,mode=700")) return kNotAllowed;
    const std::string message =
        message_of([&] { build_cpp("int x = nonsense;", default_toolchain()); });
    return message.find("the C++ compiler failed") == 0 ? 0 : 1;
  });
  if (code == kNotAllowed) SKIP("this user may not mount");
  CHECK(code == 0);
}

TEST_CASE("a limit on the size of files is an error or costs the cache", "[toolchain]") {
  const Bench bench;
  bench.script("ulimit -f 1; exec \"$real\" \"$@\"");
  CHECK_THAT(bench.message(),
             ContainsSubstring("free some space") || ContainsSubstring("compiler failed"));
  CHECK(bench.files() == 0);
}

TEST_CASE("a cache from whose disk nothing is run still serves", "[toolchain]") {
  const Bench bench;
  mkdir(bench.cache.c_str(), 0700);
  const int code = in_child([&] {
    if (!mount_small(bench.cache, "size=4m,mode=700", MS_NOEXEC)) return kNotAllowed;
    const BuiltLibrary first = bench.build(6), second = bench.build(7), again = bench.build(6);
    const bool right = answer_of(first) == 6 && answer_of(second) == 7 && answer_of(again) == 6;
    return right && again.from_cache && bench.files() == 2 ? 0 : 1;
  });
  if (code == kNotAllowed) SKIP("this user may not mount");
  CHECK(code == 0);
}

TEST_CASE("a caller that ignores SIGCHLD compiles, and learns of failures", "[toolchain]") {
  const Bench bench;
  CHECK(in_child([&] {
          signal(SIGCHLD, SIG_IGN);
          if (answer_of(bench.build(1)) != 1) return 1;
          const std::string message =
              message_of([&] { build_cpp("int x = nonsense;", default_toolchain()); });
          return message.find("nonsense") != std::string::npos ? 0 : 2;
        }) == 0);
}

TEST_CASE("building leaves no descriptor, file or process", "[toolchain]") {
  const Bench bench;
  bench.build(1);
  const size_t before = count_in("/proc/self/fd");
  bench.build(1);
  bench.build(2);
  message_of([&] { build_cpp("nonsense", default_toolchain()); });
  CHECK(count_in("/proc/self/fd") == before);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(bench.files() == 2);
}

TEST_CASE("TC_LOGS=cache tells hits from misses", "[toolchain]") {
  const Bench bench;
  const std::string words = bench.scratch.path("words");
  in_child([&] {
    const Setting logs("TC_LOGS", "cache");
    dup2(open(words.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600), 2);
    bench.build(1);
    bench.build(1);
    return 0;
  });
  CHECK_THAT(text_of(words), ContainsSubstring("[cache] miss ") &&
                                 ContainsSubstring(": compiling ") &&
                                 ContainsSubstring("[cache] hit "));
}

TEST_CASE("units are compiled by processes of their own and linked", "[toolchain]") {
  const Bench bench;
  const std::string text =
      "int part(int);\n#if !defined(TC_UNIT) || TC_UNIT == 0\nextern \"C\" int answer() { "
      "return "
      "part(4); }\n#endif\n#if !defined(TC_UNIT) || TC_UNIT == 1\nint part(int x) { return x + "
      "5; "
      "}\n#endif\n";
  CHECK(answer_of(build_cpp(text, default_toolchain(), 2)) == 9);
  CHECK(bench.runs() == 3);
  CHECK(build_cpp(text, default_toolchain(), 2).from_cache);
  CHECK(bench.files() == 1);
}

TEST_CASE("an error in a unit shows the lines of the whole text", "[toolchain]") {
  const Bench bench;
  const std::string text =
      "#if TC_UNIT == 0\nextern \"C\" int answer() { return 1; }\n#endif\n#if TC_UNIT == 1\n"
      "int part = nothing;\n#endif\n";
  CHECK_THROWS_WITH(build_cpp(text, default_toolchain(), 2),
                    ContainsSubstring("> 5 | int part = nothing;"));
  CHECK(bench.files() == 0);
}
