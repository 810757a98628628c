// How do we call the compiler? posix_spawn, a pipe in, a pipe out, and poll so that neither
// side waits for the other: a compiler that complains before it has read all of its input
// blocks nothing.
#include "tiny_compile/runtime/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tiny_compile/base/error.h"

extern char** environ;

namespace tiny_compile {
namespace {

constexpr size_t kMostOutput = size_t{1} << 20;

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

// A socket pair for the input: writing to one whose reader is gone raises EPIPE, not SIGPIPE.
void make_pair(int fds[2]) {
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
    fail("cannot make a pipe: ", std::strerror(errno));
}

pid_t spawn(const std::vector<std::string>& argv, int input, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, output, 2);
  std::vector<char*> arguments;
  for (const std::string& argument : argv)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    fail("cannot run '", argv[0], "': ", std::strerror(error),
         "; install it or name another one");
  return pid;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Sends what the program will take, appends what it says. Returns false at its end of output.
bool pump(Descriptor& input, const std::string& text, size_t& sent, Descriptor& output,
          std::string& said, int wait_ms) {
  pollfd polled[2] = {{output.get(), POLLIN, 0}, {input.get(), POLLOUT, 0}};
  if (poll(polled, input.get() >= 0 ? 2 : 1, wait_ms) < 0) return errno == EINTR;
  if (input.get() >= 0 && polled[1].revents) {
    const ssize_t n =
        send(input.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) sent += static_cast<size_t>(n);
    const bool broken = n < 0 && errno != EAGAIN && errno != EINTR;
    if (sent == text.size() || broken) input.close();
  }
  if (!polled[0].revents) return true;
  char buffer[65536];
  const ssize_t n = read(output.get(), buffer, sizeof buffer);
  if (n > 0 && said.size() < kMostOutput) said.append(buffer, static_cast<size_t>(n));
  return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& argv, const std::string& input,
                          double timeout_seconds) {
  int in[2], out[2];
  make_pair(in);
  Descriptor in_theirs(in[0]), in_ours(in[1]);
  make_pair(out);
  Descriptor out_theirs(out[0]), out_ours(out[1]);
  const pid_t pid = spawn(argv, in_theirs.get(), out_theirs.get());
  in_theirs.close();
  out_theirs.close();
  if (input.empty()) in_ours.close();
  ProcessResult result;
  const double deadline = seconds_now() + timeout_seconds;
  size_t sent = 0;
  while (pump(in_ours, input, sent, out_ours, result.output, 200)) {
    if (seconds_now() < deadline) continue;
    result.timed_out = true;
    kill(pid, SIGKILL);
    break;
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return result;
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path ? path : "/usr/bin:/bin"; !rest.empty();) {
    const size_t colon = rest.find(':');
    const std::string candidate = std::string(rest.substr(0, colon)) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  }
  return "";
}

}  // namespace tiny_compile
