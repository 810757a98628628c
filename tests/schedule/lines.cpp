// How good is a kernel's schedule beside others? Programs under each line of a list, in turns, with their bits
// compared: what the policy's rules come from (tests/bench/NOTES.md, "Next to the policy's layouts").
//
//   build/tc print f.graph --target=cuda --machine=h200 --until=plan_memory > f.program
//   build/lines --near f.program ... > list            what lies next to the policy's layout of the largest kernel
//   build/lines --build=1/2 list & build/lines --build=2/2 list ; wait      compiles all, into the cache
//   build/lines list                                   milliseconds of each
//
// A line of the list is `file | kernel | schedule`; one without a schedule stands for the file as it is, and comes first.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>

#include "tiny_compile/base/input_file.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/compile/race.h"
#include "tiny_compile/schedule/neighbours.h"
#include "tiny_compile/tensor/cuda_memory.h"
#include "tiny_compile/tile/lower.h"

namespace {

using namespace tiny_compile;

constexpr int kTurns = 4;
constexpr double kBatch = 2;  // milliseconds of a turn, at least
constexpr int kMostCalls = 400;

struct Line {
  std::string file, kernel, schedule;
};

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::vector<Line> read_lines(const std::string& path) {
  std::vector<Line> lines;
  std::istringstream list(read_text(path));
  for (std::string text; std::getline(list, text);) {
    std::istringstream parts(text);
    Line line;
    std::getline(parts, line.file, '|'), std::getline(parts, line.kernel, '|');
    std::getline(parts, line.schedule);
    if (trimmed(line.kernel).empty())
      fail(path, ": '", text, "' is no file | kernel | schedule");
    lines.push_back({trimmed(line.file), trimmed(line.kernel), trimmed(line.schedule)});
  }
  return lines;
}

// The file's program with that line in the kernel's place of one.
Program program_of(const Line& line) {
  std::istringstream text(read_text(line.file));
  std::string all;
  bool is_inside = false;
  for (std::string one; std::getline(text, one);) {
    const std::string words = trimmed(one);
    if (words.rfind("kernel ", 0) == 0)
      is_inside = words.rfind("kernel " + line.kernel + " ", 0) == 0;
    const bool replaced =
        is_inside && !line.schedule.empty() && words.rfind("schedule ", 0) == 0;
    all += replaced ? "schedule " + line.schedule + "\n" : one + "\n";
  }
  return parse_program(all);
}

Built built(const Line& line) {
  const Program program = program_of(line);
  return build(program, emit(lower_to_tiles(program)));
}

// --- what lies next to a program's own ---

void print_neighbours(const std::string& file) {
  const Program program = parse_program(read_text(file));
  const auto moves_more = [&](const Kernel& a, const Kernel& b) {
    return bytes_moved(program, a) < bytes_moved(program, b);
  };
  const auto largest =
      std::max_element(program.kernels.begin(), program.kernels.end(), moves_more);
  if (largest == program.kernels.end()) return;
  std::printf("%s | %s |\n", file.c_str(), largest->name.c_str());
  for (const Schedule& near : neighbours(program, *largest))
    std::printf("%s | %s | %s\n", file.c_str(), largest->name.c_str(), str(near).c_str());
}

// --- how long each takes ---

double milliseconds_of(const Built& built, const std::vector<Tensor>& inputs, int calls) {
  return 1e3 * seconds_of(built, inputs, calls);
}

// Row-major: inputs that lie otherwise are refused.
std::vector<Tensor> inputs_of(const Program& program, Device device) {
  std::vector<Type> types;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.role != Role::Input) continue;
    if (!buffer.strides.empty())
      fail(buffer.name, " has strides: only row-major inputs are made");
    types.push_back(buffer.type);
  }
  return inputs_for(types, device);
}

struct Timed {
  const Line* line;
  Built built;
  double least = 0;
};

// Prints a file's lines with their times; those that fail, with the reason.
void measure(const std::vector<const Line*>& lines) {
  const Program program = program_of(*lines[0]);
  const Device device = program.target == Target::Cuda ? cuda : cpu;
  const std::vector<Tensor> inputs = inputs_of(program, device);
  std::vector<Tensor> wanted;
  std::vector<Timed> running;
  for (const Line* line : lines) {
    try {
      Timed timed{line, built(*line)};
      const std::vector<Tensor> got = timed.built.run(inputs);
      if (wanted.empty()) wanted = got;
      for (size_t k = 0; k < got.size(); k++) {
        if (!same_bits(got[k], wanted[k])) fail("other bits than the first line's");
      }
      running.push_back(std::move(timed));
    } catch (const Error& error) {
      std::printf("%s | %s | %s\n", line->file.c_str(), error.what(), line->schedule.c_str());
    }
  }
  for (int turn = 0; turn < kTurns; turn++) {
    for (Timed& one : running) {
      const double once = milliseconds_of(one.built, inputs, 2);
      const int calls = std::clamp(static_cast<int>(kBatch / once), 2, kMostCalls);
      const double time = milliseconds_of(one.built, inputs, calls);
      one.least = turn == 0 ? time : std::min(one.least, time);
    }
  }
  for (const Timed& one : running)
    std::printf("%s | %.4f | %s\n", one.line->file.c_str(), one.least,
                one.line->schedule.c_str());
  std::fflush(stdout);
}

void measure_all(const std::vector<Line>& lines) {
  std::map<std::string, std::vector<const Line*>> by_file;
  for (const Line& line : lines) by_file[line.file].push_back(&line);
  for (const auto& [file, own] : by_file) {
    try {
      measure(own);
    } catch (const Error& error) {
      std::printf("%s: %s\n", file.c_str(), error.what());
    }
  }
}

// Part `k` of `n`; what is refused is told when it is measured.
void build_part(const std::vector<Line>& lines, const std::string& part) {
  size_t k = 0, n = 0;
  if (std::sscanf(part.c_str(), "%zu/%zu", &k, &n) != 2 || k < 1 || k > n)
    fail("--build=", part, ": K/N, from 1/1");
  for (size_t line = k - 1; line < lines.size(); line += n) {
    try {
      built(lines[line]);
    } catch (const Error&) {
    }
  }
}

int run(const std::vector<std::string>& words) {
  if (words.size() >= 2 && words[0] == "--near") {
    for (size_t k = 1; k < words.size(); k++) print_neighbours(words[k]);
  } else if (words.size() == 2 && words[0].rfind("--build=", 0) == 0) {
    build_part(read_lines(words[1]), words[0].substr(8));
  } else if (words.size() == 1) {
    measure_all(read_lines(words[0]));
  } else {
    std::cerr << "lines LIST | --build=K/N LIST | --near PROGRAM ...\n";
    return 2;
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run({words + 1, words + count});
  } catch (const tiny_compile::Error& error) {
    std::cerr << "lines: " << error.what() << "\n";
    return 1;
  }
}
