// How do we call the compiler? posix_spawn (no copy of a big process's page tables), a socket
// in, a socket out, and poll so that neither side waits for the other: a compiler that
// complains before it has read all of its input blocks nothing.
//
// Every descriptor is closed on exec and every child is waited for, whatever is thrown. The
// child belongs to a process group of its own, so that a hung compiler dies with what it
// started. The group's leader is a watchman, who reads from a socket of ours: he reads its end
// when this process is gone, however that ended (even by SIGKILL), and ends the group:
//
//   run_process({"g++", ...})  =>  sh -c 'read; kill -9 0'  <- ours
//                                  g++ -> cc1plus, as, ld   in the same group
#include "tiny_compile/runtime/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tiny_compile/base/error.h"
#include "tiny_compile/runtime/descriptor.h"

namespace tiny_compile {
namespace {

constexpr size_t kMostOutput = size_t{1} << 20;

// Above 2, so that the child's dup2 onto 0, 1 and 2 overwrites nothing: a caller may have
// closed its own.
Descriptor raised(int fd) {
  if (fd > 2) return Descriptor(fd);
  const Descriptor low(fd);
  return Descriptor(fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

struct Pair {
  Descriptor theirs, ours;
};

// Sockets, not pipes: writing to one whose reader is gone gives EPIPE, not SIGPIPE.
Pair make_pair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    fail("cannot talk to another process: ", std::strerror(errno),
         "; raise the limit of open files (ulimit -n)");
  Pair pair{raised(fds[0]), raised(fds[1])};
  if (!pair.theirs || !pair.ours)
    fail("cannot talk to another process: too many open files; raise their limit (ulimit -n)");
  return pair;
}

// posix_spawn's arguments: the child's descriptors, group (0: one of its own), and signals as
// a shell would set them.
class SpawnPlan {
 public:
  SpawnPlan(int input, int output, pid_t group) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    posix_spawn_file_actions_adddup2(&actions, output, 2);
    posix_spawnattr_init(&attributes);
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    for (int signal : {SIGPIPE, SIGCHLD, SIGINT, SIGTERM}) sigaddset(&usual, signal);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setpgroup(&attributes, group);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// {"A=1"} before an environment of A=0, B=2 gives A=1, B=2.
std::vector<std::string> environment_with(std::vector<std::string> settings) {
  const size_t own = settings.size();
  for (char** entry = environ; entry && *entry; entry++) {
    const char* equals = std::strchr(*entry, '=');
    const size_t length = equals ? static_cast<size_t>(equals - *entry) + 1 : 0;
    bool replaced = false;
    for (size_t i = 0; i < own && length; i++)
      replaced = replaced || settings[i].compare(0, length, *entry, length) == 0;
    if (!replaced) settings.push_back(*entry);
  }
  return settings;
}

void wait_for(pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Leads a group and ends it when this process is gone. Without a shell there is none: group 0.
class Watchman {
 public:
  Watchman() : pair_(make_pair()) {
    const Descriptor nowhere = raised(open("/dev/null", O_WRONLY | O_CLOEXEC));
    const SpawnPlan plan(pair_.theirs.get(), nowhere.get(), 0);
    const char* words[] = {"/bin/sh", "-c", "read end; kill -9 0", nullptr};
    if (posix_spawn(&pid_, words[0], &plan.actions, &plan.attributes, const_cast<char**>(words),
                    environ) != 0)
      pid_ = 0;
    pair_.theirs.close();
  }
  ~Watchman() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);  // not a server that the program left behind
    wait_for(pid_);
  }
  Watchman(const Watchman&) = delete;
  Watchman& operator=(const Watchman&) = delete;

  pid_t group() const { return pid_; }

 private:
  Pair pair_;
  pid_t pid_ = 0;
};

// A running program; destroyed, it is killed with its group and waited for.
class Child {
 public:
  Child(const std::vector<std::string>& argv, const std::vector<std::string>& settings,
        int input, int output) {
    const SpawnPlan plan(input, output, watchman_.group());
    const std::vector<std::string> environment = environment_with(settings);
    const int error = posix_spawnp(&pid_, argv[0].c_str(), &plan.actions, &plan.attributes,
                                   pointers_to(argv).data(), pointers_to(environment).data());
    if (error != 0)
      fail("cannot run '", argv[0], "': ", std::strerror(error),
           "; install it or name another one");
  }
  ~Child() {
    kill_group();
    if (running_) wait_for(pid_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Whether it has ended; then `status` is what waitpid tells.
  bool has_ended() {
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno == ECHILD)) running_ = false;
    return !running_;
  }
  void kill_group() const {
    const pid_t group = watchman_.group() ? watchman_.group() : pid_;
    if (running_ && kill(-group, SIGKILL) != 0) kill(pid_, SIGKILL);
  }

  int status = 0;

 private:
  Watchman watchman_;
  pid_t pid_ = 0;
  bool running_ = true;
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Sends what the program will take, appends what it says. Returns false at its end of output.
bool pump(Descriptor& input, const std::string& text, size_t& sent, const Descriptor& output,
          std::string& said, int wait_ms) {
  pollfd polled[2] = {{output.get(), POLLIN, 0}, {input.get(), POLLOUT, 0}};
  if (poll(polled, input ? 2 : 1, wait_ms) < 0) return errno == EINTR;
  if (input && polled[1].revents) {
    const ssize_t n =
        send(input.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) sent += static_cast<size_t>(n);
    const bool broken = n < 0 && errno != EAGAIN && errno != EINTR;
    if (sent == text.size() || broken) input.close();
  }
  if (!polled[0].revents) return true;
  char buffer[65536];
  const ssize_t n = recv(output.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  if (n > 0 && said.size() < kMostOutput) said.append(buffer, static_cast<size_t>(n));
  return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

// Until the program ends, or closes its output, or time is up. What it started may keep the
// output open beyond its end.
void talk(Child& child, Pair& in, Pair& out, const std::string& input, double deadline,
          std::string& said) {
  size_t sent = 0;
  while (seconds_now() < deadline) {
    const bool ended = child.has_ended();
    const size_t before = said.size();
    if (!pump(in.ours, input, sent, out.ours, said, ended ? 0 : 20)) return;
    if (ended && said.size() == before) return;
  }
}

// A program may close its output and go on.
bool wait_until(Child& child, double deadline) {
  while (!child.has_ended()) {
    if (seconds_now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& argv, const std::string& input,
                          double timeout_seconds, const std::vector<std::string>& settings) {
  Pair in = make_pair(), out = make_pair();
  Child child(argv, settings, in.theirs.get(), out.theirs.get());
  in.theirs.close();
  out.theirs.close();
  if (input.empty()) in.ours.close();
  ProcessResult result;
  const double deadline = seconds_now() + timeout_seconds;
  talk(child, in, out, input, deadline, result.output);
  result.timed_out = !wait_until(child, deadline);
  if (result.timed_out) {
    child.kill_group();
    wait_until(child, seconds_now() + 5);
  }
  result.exit_code = WIFEXITED(child.status) ? WEXITSTATUS(child.status) : -1;
  result.signal = WIFSIGNALED(child.status) ? WTERMSIG(child.status) : 0;
  return result;
}

std::string find_program(const std::string& name) {
  const auto can_run = [](const std::string& path) {
    struct stat status;
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) return can_run(name) ? name : "";
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path ? path : "/usr/bin:/bin"; !rest.empty();) {
    const size_t colon = rest.find(':');
    const std::string candidate = std::string(rest.substr(0, colon)) + "/" + name;
    if (can_run(candidate)) return candidate;
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  }
  return "";
}

}  // namespace tiny_compile
