// How does an answer that crashes or never ends harm nothing and still tell what it did? Every
// test case runs in a process of its own with limits on time, memory and files; what it prints is
// kept and shown below its line.
//
//   build/lessons/05-1/mine            every case; the last line is "3 of 4 cases pass"
//   build/lessons/05-1/mine --names    the cases' names
#define CATCH_CONFIG_RUNNER
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace {

// Of one core, for one case; six times that by the clock.
int seconds_allowed() {
  const char* setting = std::getenv("TC_CHECK_SECONDS");
  return setting ? std::max(std::atoi(setting), 1) : 5;
}

constexpr rlim_t kMemory = 2ull << 30, kFile = 256ull << 20;
constexpr size_t kMostLines = 60;

#if TC_CATCH_VERSION == 3
using Listener = Catch::EventListenerBase;
using Case = Catch::TestCaseHandle;
const Catch::TestCaseInfo& info_of(const Case& test) { return test.getTestCaseInfo(); }
#else
using Listener = Catch::TestEventListenerBase;
using Case = Catch::TestCase;
const Catch::TestCaseInfo& info_of(const Case& test) { return test; }
#endif

// "a\nb" => "      a\n      b\n"
std::string indented(const std::string& text) {
  std::string result;
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    if (end == begin) continue;
    result += "        " + text.substr(begin, end - begin) + "\n";
  }
  return result;
}

// Says what failed in the check's own words, without Catch2's frame around it.
struct Teller : Listener {
  using Listener::Listener;

#if TC_CATCH_VERSION == 3
  void assertionEnded(const Catch::AssertionStats& stats) override { tell(stats); }
#else
  bool assertionEnded(const Catch::AssertionStats& stats) override {
    tell(stats);
    return true;
  }
#endif

  static void tell(const Catch::AssertionStats& stats) {
    const Catch::AssertionResult& result = stats.assertionResult;
    if (result.isOk()) return;
    if (result.getResultType() == Catch::ResultWas::FatalErrorCondition) return;  // signal_text
    std::string text;
    for (const Catch::MessageInfo& message : stats.infoMessages)
      text += std::string(message.message) + "\n";
    if (result.hasExpression()) {
      text += std::string(result.getExpressionInMacro()) + "\n";
      if (result.hasExpandedExpression())
        text += "is  " + std::string(result.getExpandedExpression()) + "\n";
    }
    if (result.hasMessage() && stats.infoMessages.empty())
      text += std::string(result.getMessage()) + "\n";
    std::printf("%s", text.c_str());
    std::fflush(stdout);
  }
};
CATCH_REGISTER_LISTENER(Teller)

// Catch2's own list; see tests/main.cpp.
std::vector<Case>& all_cases(Catch::Session& session) {
  return const_cast<std::vector<Case>&>(Catch::getAllTestCasesSorted(session.config()));
}

void limit(int what, rlim_t value) {
  rlimit limits{};
  getrlimit(what, &limits);
  limits.rlim_cur = std::min(value, limits.rlim_max);
  setrlimit(what, &limits);
}

// The life of the child: one case, everything it prints into `output`.
int run_case(Catch::Session& session, const Case& test, std::FILE* output) {
  dup2(fileno(output), STDOUT_FILENO);
  dup2(fileno(output), STDERR_FILENO);
  std::setvbuf(stdout, nullptr, _IONBF, 0);  // what it says before a crash is kept
  setpgid(0, 0);
  limit(RLIMIT_CPU, rlim_t(seconds_allowed()));
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, kFile);
#ifndef __SANITIZE_ADDRESS__
  limit(RLIMIT_DATA, kMemory);
#endif
  alarm(unsigned(6 * seconds_allowed()));
  const Case only = test;
  all_cases(session) = {only};
  auto settings = session.configData();
#if TC_CATCH_VERSION == 3
  settings.defaultOutputFilename = "/dev/null";
#else
  settings.outputFilename = "/dev/null";
#endif
  settings.abortAfter = 1;  // one thing to mend at a time
  session.useConfigData(settings);
  const int failed = session.run();
  std::fflush(nullptr);
  return failed;
}

std::string read_all(std::FILE* file) {
  std::string text;
  std::rewind(file);
  size_t lines = 0;
  for (int c = std::fgetc(file); c != EOF && lines < kMostLines; c = std::fgetc(file)) {
    text.push_back(char(c));
    lines += c == '\n';
  }
  if (lines == kMostLines) text += "... and more\n";
  std::fclose(file);
  return text;
}

std::string signal_text(int signal) {
  switch (signal) {
    case SIGXCPU:
    case SIGALRM:
      return "stopped after " + std::to_string(seconds_allowed()) +
             " s: a loop that never ends? Look for one whose condition nothing changes.";
    case SIGSEGV:
    case SIGBUS:
      return "signal 11, segmentation fault: an index out of range, an empty vector's element, "
             "or "
             "a recursion without end.";
    case SIGFPE: return "signal 8, arithmetic: an integer divided by zero.";
    case SIGABRT: return "signal 6, aborted: a CHECK failed, or an exception left a noexcept.";
    case SIGXFSZ: return "stopped: it wrote more than a file may hold. Printing in a loop?";
    default: return "ended by signal " + std::to_string(signal) + ".";
  }
}

struct Outcome {
  bool passed = false;
  bool timed_out = false;
};

Outcome run_alone(Catch::Session& session, const Case& test) {
  std::FILE* output = std::tmpfile();
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) std::_Exit(run_case(session, test, output));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  kill(-child, SIGKILL);  // what it started
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  const bool passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  std::printf("  %s  %s\n", passed ? "ok  " : "FAIL", info_of(test).name.c_str());
  std::printf("%s", indented(read_all(output)).c_str());
  if (signal) std::printf("%s", indented(signal_text(signal)).c_str());
  return {passed, signal == SIGXCPU || signal == SIGALRM};
}

int check_all(Catch::Session& session, const std::vector<Case>& cases) {
  size_t passed = 0;
  for (const Case& test : cases) {
    const Outcome outcome = run_alone(session, test);
    passed += outcome.passed;
    if (outcome.timed_out) {
      std::printf("the cases behind it did not run\n");
      break;
    }
  }
  std::printf("%zu of %zu cases pass\n", passed, cases.size());
  return passed == cases.size() && !cases.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Catch::Session session;
  const std::vector<Case> cases = all_cases(session);
  if (argc > 1 && std::strcmp(argv[1], "--names") == 0) {
    for (const Case& test : cases) std::printf("%s\n", info_of(test).name.c_str());
    return 0;
  }
  setenv("TC_CACHE_DIR", "build/lessons/cache", 0);
  setenv("OMP_WAIT_POLICY", "passive", 0);
  return check_all(session, cases);
}
