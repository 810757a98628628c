#include "tiny_compile/runtime/process.h"

#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <sstream>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

namespace {

ProcessResult shell(const std::string& script, const std::string& input = "",
                    double timeout_seconds = 10) {
  return run_process({"sh", "-c", script}, input, timeout_seconds);
}

// Whether a process runs; a zombie that nobody waits for does not.
bool runs(const std::string& pid) {
  const std::string state = text_of("/proc/" + pid + "/stat");
  return !state.empty() && state.find(") Z") == std::string::npos;
}

bool ends(const std::string& pid) {
  for (int i = 0; i < 500 && runs(pid); i++) usleep(2000);
  return !runs(pid);
}

}  // namespace

TEST_CASE("input goes in, both outputs and the exit code come out", "[process]") {
  const ProcessResult result = shell("cat; echo complaint >&2; exit 3", "text\n");
  CHECK(result.output == "text\ncomplaint\n");
  CHECK(result.exit_code == 3);
  CHECK(result.signal == 0);
  CHECK_FALSE(result.timed_out);
}

TEST_CASE("megabytes both ways block nobody, and the first is kept", "[process]") {
  const std::string input(3 << 20, 'x');
  const ProcessResult result = run_process({"cat"}, input, 10);
  CHECK(result.exit_code == 0);
  CHECK(result.output.size() >= 1 << 20);
  CHECK(result.output == input.substr(0, result.output.size()));
}

TEST_CASE("a program that reads nothing is no error", "[process]") {
  CHECK(run_process({"true"}, std::string(1 << 20, 'x'), 10).exit_code == 0);
}

TEST_CASE("a signal that ends a program is told", "[process]") {
  const ProcessResult result = shell("kill -9 $$");
  CHECK(result.signal == SIGKILL);
  CHECK(result.exit_code == -1);
}

TEST_CASE("at the time limit a program dies with what it started", "[process]") {
  const ProcessResult result = shell("sleep 60 & echo $!; wait", "", 0.2);
  CHECK(result.timed_out);
  CHECK(result.exit_code != 0);
  CHECK(ends(std::to_string(std::atoi(result.output.c_str()))));
}

TEST_CASE("when the caller is killed its program dies with what that started", "[process]") {
  for (const int signal : {SIGKILL, SIGTERM, SIGINT}) {
    INFO(signal);
    const Scratch scratch;
    const std::string pids = scratch.path("pids");
    const tests::Child caller([&] {
      std::signal(signal, SIG_DFL);
      shell("sleep 60 & echo $! $$ >" + pids + ".new; mv " + pids + ".new " + pids + "; wait",
            "", 60);
      return 0;
    });
    for (int i = 0; i < 2500 && text_of(pids).empty(); i++) usleep(2000);
    std::istringstream words(text_of(pids));
    std::string inner, outer;
    words >> inner >> outer;
    REQUIRE_FALSE(outer.empty());
    CHECK((runs(inner) && runs(outer)));
    kill(caller.pid(), signal);
    CHECK(caller.wait() == 128 + signal);
    CHECK(ends(inner));
    CHECK(ends(outer));
  }
}

TEST_CASE("a program that closes its output and hangs meets the limit too", "[process]") {
  CHECK(shell("exec >&- 2>&-; sleep 60", "", 0.2).timed_out);
}

TEST_CASE("a program's end counts, not that of a server it left behind", "[process]") {
  const ProcessResult result = shell("sleep 60 & echo $!", "", 5);
  CHECK_FALSE(result.timed_out);
  CHECK(result.exit_code == 0);
  kill(std::atoi(result.output.c_str()), SIGKILL);
}

TEST_CASE("a program that is not there is an error with advice", "[process]") {
  CHECK_THAT(message_of([] { run_process({"/nowhere/cc"}, "", 1); }),
             ContainsSubstring("cannot run '/nowhere/cc': No such file") &&
                 ContainsSubstring("install it"));
}

TEST_CASE("no run leaves a descriptor or a zombie", "[process]") {
  const size_t before = count_in("/proc/self/fd");
  shell("exit 0");
  shell("sleep 60", "", 0.05);
  message_of([] { run_process({"/nowhere/cc"}, "", 1); });
  CHECK(count_in("/proc/self/fd") == before);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
}

TEST_CASE("a program gets three descriptors of ours and no more", "[process]") {
  // The shell closes the ends of its pipe meanwhile, which ls may have seen.
  CHECK(shell("ls -l /proc/$$/fd 2>/dev/null | grep -c socket:").output == "3\n");
}

TEST_CASE("a caller without standard descriptors can run programs", "[process]") {
  CHECK(in_child([] {
          for (int fd : {0, 1, 2}) close(fd);
          return run_process({"cat"}, "text", 10).output == "text" ? 0 : 1;
        }) == 0);
}

TEST_CASE("a caller that ignores SIGCHLD still gets the words", "[process]") {
  CHECK(in_child([] {
          signal(SIGCHLD, SIG_IGN);
          const ProcessResult result = shell("echo words; exit 3");
          return result.output == "words\n" && !result.timed_out ? 0 : 1;
        }) == 0);
}

TEST_CASE("signals that the caller blocks or ignores are as usual in the program",
          "[process]") {
  CHECK(in_child([] {
          sigset_t all;
          sigfillset(&all);
          sigprocmask(SIG_SETMASK, &all, nullptr);
          signal(SIGPIPE, SIG_IGN);
          return shell("kill -TERM $$; sleep 1; kill -PIPE $$").signal == SIGTERM ? 0 : 1;
        }) == 0);
}

TEST_CASE("settings replace the environment's", "[process]") {
  const Setting one("TC_TEST_ONE", "old"), two("TC_TEST_TWO", "kept");
  const ProcessResult result =
      run_process({"sh", "-c", "echo $TC_TEST_ONE $TC_TEST_TWO"}, "", 10, {"TC_TEST_ONE=new"});
  CHECK(result.output == "new kept\n");
}

TEST_CASE("without descriptors the error names the limit", "[process]") {
  CHECK(in_child([] {
          const rlimit none{3, 3};
          setrlimit(RLIMIT_NOFILE, &none);
          const std::string message = message_of([] { shell("exit 0"); });
          return message.find("ulimit -n") != std::string::npos ? 0 : 1;
        }) == 0);
}

TEST_CASE("find_program takes files that can be run", "[process]") {
  const Scratch scratch;
  const std::string spaced = scratch.path("it's a \"dir\"");
  mkdir(scratch.path("first").c_str(), 0700);
  mkdir(scratch.path("first/tool").c_str(), 0700);  // a directory of that name
  mkdir(spaced.c_str(), 0700);
  write_text(scratch.path("first/text"), "not to be run");
  write_program(spaced + "/tool", "exit 0\n");
  write_program(spaced + "/text", "exit 0\n");
  const Setting path("PATH", scratch.path("first") + "::" + spaced);
  CHECK(find_program("tool") == spaced + "/tool");
  CHECK(find_program("text") == spaced + "/text");
  CHECK(find_program("absent").empty());
  CHECK(find_program(scratch.path("first/tool")).empty());
  const Setting none("PATH", "");
  CHECK(find_program("tool").empty());
}
