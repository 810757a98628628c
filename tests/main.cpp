// How do the test cases run side by side and end in one line?
//
//   build/tests                       Catch2's own command line
//   build/tests --jobs=8 "[fuse]"     the same cases in 8 processes; the last line is
//                                     12 passed, 0 failed, 1 skipped
//   build/tests --jobs=8 --slowest=5  and where the time went
//
// A worker's output is shown only if a case in it failed or was skipped. A case that takes its
// process down counts as failed; the cases behind it then run in a fresh process.
#define CATCH_CONFIG_RUNNER
#include <sys/wait.h>
#include <unistd.h>
#include <cstdlib>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace {

#if TC_CATCH_VERSION == 3
using Listener = Catch::EventListenerBase;
using Case = Catch::TestCaseHandle;
const Catch::TestCaseInfo& info_of(const Case& test) { return test.getTestCaseInfo(); }
#else
using Listener = Catch::TestEventListenerBase;
using Case = Catch::TestCase;
const Catch::TestCaseInfo& info_of(const Case& test) { return test; }
#endif

enum Outcome : char { kPassed = 'p', kFailed = 'f', kSkipped = 's', kNeverEnded = '?' };

struct CaseRecord {
  std::string name;
  Outcome outcome = kNeverEnded;
  double seconds = 0;
};

std::FILE* record_file = nullptr;  // open only in a worker

// Writes "name\n" when a case starts and "p 0.012\n" when it ends, so that a crash shows.
struct Recorder : Listener {
  using Listener::Listener;
  std::chrono::steady_clock::time_point start;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    start = std::chrono::steady_clock::now();
    write(info.name);
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    write(std::string(1, outcome(stats.totals)) + " " + std::to_string(took.count()));
  }

  static Outcome outcome(const Catch::Totals& totals) {
#ifdef TC_OWN_SKIP
    const bool skipped = tiny_compile::tests::skip_requested;
    tiny_compile::tests::skip_requested = false;
#else
    const bool skipped = totals.testCases.skipped > 0;
#endif
    if (totals.testCases.failed > 0) return kFailed;
    return skipped ? kSkipped : kPassed;
  }

  static void write(const std::string& line) {
    if (record_file == nullptr) return;
    std::fprintf(record_file, "%s\n", line.c_str());
    std::fflush(record_file);
  }
};
CATCH_REGISTER_LISTENER(Recorder)

struct Options {
  int jobs = 0;  // 0: Catch2's own command line
  int slowest = 0;
  std::vector<char*> rest;  // Catch2's arguments
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 0; i < argc; ++i) {
    if (std::strncmp(argv[i], "--jobs=", 7) == 0) {
      options.jobs = std::max(1, std::atoi(argv[i] + 7));
    } else if (std::strncmp(argv[i], "--slowest=", 10) == 0) {
      options.slowest = std::atoi(argv[i] + 10);
    } else {
      options.rest.push_back(argv[i]);
    }
  }
  return options;
}

// Catch2's own list, in the order it runs them. Neither version lets a program set it; it is
// plain data all the same, and dropping cases from it is how a worker gets its share.
std::vector<Case>& all_cases(Catch::Session& session) {
  return const_cast<std::vector<Case>&>(Catch::getAllTestCasesSorted(session.config()));
}

std::vector<Case> selected_cases(Catch::Session& session) {
  auto& config = session.config();
  if (config.hasTestFilters()) {
    return Catch::filterTests(all_cases(session), config.testSpec(), config);
  }
  std::vector<Case> visible;
  for (const Case& test : all_cases(session)) {
    if (!info_of(test).isHidden()) visible.push_back(test);
  }
  return visible;
}

struct Worker {
  std::vector<Case> cases;
  pid_t process = 0;
  std::FILE* output = nullptr;
  std::FILE* records = nullptr;
};

int work(Catch::Session& session, const Worker& worker) {
  dup2(fileno(worker.output), STDOUT_FILENO);
  dup2(fileno(worker.output), STDERR_FILENO);
  record_file = worker.records;
  all_cases(session) = worker.cases;
  return session.run();
}

std::string read_all(std::FILE* file) {
  std::string text;
  std::rewind(file);
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text.push_back(char(c));
  std::fclose(file);
  return text;
}

// "adds\np 0.5\nsubtracts\n" -> {adds, passed, 0.5 s}, {subtracts, never ended}
std::vector<CaseRecord> parse_records(const std::string& text) {
  std::vector<CaseRecord> records;
  bool inside = false;
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (inside) {
      records.back().outcome = Outcome(line[0]);
      records.back().seconds = std::atof(line.c_str() + 1);
    } else {
      records.push_back({line, kNeverEnded, 0});
    }
    inside = !inside;
  }
  return records;
}

struct Report {
  std::vector<CaseRecord> cases;
  int unexplained = 0;  // workers that failed although all their cases passed: a leak, say

  // Catch2 3 gives an exit code of its own where all cases were skipped.
  bool all(Outcome outcome) const { return count(outcome) == int(cases.size()); }

  int count(Outcome outcome) const {
    return int(std::count_if(cases.begin(), cases.end(),
                             [&](const CaseRecord& c) { return c.outcome == outcome; }));
  }
};

// Adds what a finished worker did to the report; returns the cases it did not get to.
std::vector<Case> collect(Worker worker, int status, Report& report) {
  std::vector<CaseRecord> records = parse_records(read_all(worker.records));
  const std::string output = read_all(worker.output);
  const size_t ended = records.size();
  Report part{records};
  const bool failed = status != 0 || part.count(kSkipped) > 0;
  if (failed) std::fputs(output.c_str(), stdout);
  if (ended > 0 && records.back().outcome == kNeverEnded) {
    std::printf("process ended inside \"%s\" (status %d)\n", records.back().name.c_str(),
                status);
    records.back().outcome = kFailed;
  } else if (status != 0 && part.count(kFailed) == 0 && !part.all(kSkipped)) {
    std::printf("a test process failed although its cases passed (status %d)\n", status);
    ++report.unexplained;
    worker.cases.clear();
  }
  report.cases.insert(report.cases.end(), records.begin(), records.end());
  if (ended >= worker.cases.size()) return {};
  return {worker.cases.begin() + long(ended), worker.cases.end()};
}

void print_slowest(Report report, size_t count) {
  std::sort(report.cases.begin(), report.cases.end(),
            [](const CaseRecord& a, const CaseRecord& b) { return a.seconds > b.seconds; });
  for (size_t i = 0; i < std::min(count, report.cases.size()); ++i) {
    std::printf("%8.3f s  %s\n", report.cases[i].seconds, report.cases[i].name.c_str());
  }
}

constexpr size_t kHands = 16;  // for each process, one after the other: all end together

// Deals the cases out in a fixed shuffled order: neighbours in a file take alike, so that
// shuffled hands are even.
std::vector<std::vector<Case>> deal(std::vector<Case> cases, int jobs) {
  unsigned state = 1;
  for (size_t i = cases.size(); i > 1; --i) {
    state = state * 1664525u + 1013904223u;
    std::swap(cases[i - 1], cases[(state >> 8) % i]);
  }
  std::vector<std::vector<Case>> hands(std::min(size_t(jobs) * kHands, cases.size()));
  for (size_t i = 0; i < cases.size(); ++i) hands[i % hands.size()].push_back(cases[i]);
  return hands;
}

// Forks; true in the child.
bool start(Worker& worker) {
  worker.output = std::tmpfile();
  worker.records = std::tmpfile();
  std::fflush(stdout);
  worker.process = fork();
  return worker.process == 0;
}

int run_parallel(Catch::Session& session, const Options& options) {
  std::vector<std::vector<Case>> hands = deal(selected_cases(session), options.jobs);
  std::vector<Worker> workers(std::min(size_t(options.jobs), hands.size()));
  const auto has_cases = [&](Worker& worker) {
    if (worker.cases.empty() && !hands.empty()) {
      worker.cases = std::move(hands.back());
      hands.pop_back();
    }
    return !worker.cases.empty();
  };
  for (Worker& worker : workers) {
    if (has_cases(worker) && start(worker)) return work(session, worker);
  }
  Report report;
  for (size_t left = workers.size(); left > 0;) {
    int status = 0;
    const pid_t process = wait(&status);
    for (Worker& worker : workers) {
      if (worker.process != process) continue;
      worker.cases = collect(worker, status, report);
      if (!has_cases(worker)) {
        --left;
      } else if (start(worker)) {
        return work(session, worker);
      }
    }
  }
  print_slowest(report, size_t(options.slowest));
  const int failed = report.count(kFailed) + report.unexplained;
  std::printf("%d passed, %d failed, %d skipped\n", report.count(kPassed), failed,
              report.count(kSkipped));
  return failed > 0 || report.cases.empty() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options = parse(argc, argv);
  Catch::Session session;
  const int wrong = session.applyCommandLine(int(options.rest.size()), options.rest.data());
  if (wrong != 0) return wrong;
  return options.jobs > 0 ? run_parallel(session, options) : session.run();
}
