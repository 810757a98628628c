// What stands behind make ex-NN, hint-NN, diff-NN, progress and check-exercises.
//
//   exercise start DIR                    copies start.cpp to mine.cpp where there is none
//   exercise hint DIR STATE               the next of hints.md's hints; STATE counts them
//   exercise diff DIR                     mine.cpp against solution.cpp
//   exercise prove BINARY SOURCE          start fails, solution passes, wrong_* fails in its case
//   exercise form DIR                     whether the files of an exercise are as they should be
//   exercise progress [DIR=BINARY ...]    one line an exercise
//   exercise guard PROGRAM                runs it with a time limit and explains its end
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "lessons/tools/blocks.h"
#include "tiny_compile/base/error.h"
#include "tiny_compile/runtime/process.h"

namespace tiny_compile::lessons {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("there is no ", path.string());
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

// lessons/05_cse_dce/exercise_2 => "05-2"
std::string name_of(const fs::path& directory) {
  const std::string exercise = directory.filename(),
                    lesson = directory.parent_path().filename();
  return lesson.substr(0, 2) + "-" + exercise.substr(exercise.find('_') + 1);
}

// exercise.h's first line without its slashes: "05-1 ★ Commuting operands".
std::string title_of(const fs::path& directory) {
  const std::string text = read_file(directory / "exercise.h");
  const std::string line = text.substr(0, text.find('\n'));
  return line.substr(std::min(line.find_first_not_of("/ "), line.size()));
}

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) found++;
  return found;
}

int start(const fs::path& directory) {
  const fs::path mine = directory / "mine.cpp";
  if (!fs::exists(directory / "exercise.h"))
    fail("there is no exercise ", directory.string(), "; make progress lists them");
  std::cout << title_of(directory) << "\n";
  if (fs::exists(mine)) return 0;
  fs::copy_file(directory / "start.cpp", mine);
  std::cout << "  the task    " << (directory / "exercise.h").string() << "\n"
            << "  your file   " << mine.string() << "  (new: a copy of start.cpp)\n"
            << "  again       make ex-" << name_of(directory) << "      stuck: make hint-"
            << name_of(directory) << "\n\n";
  return 0;
}

// The <details> blocks of hints.md, without their tags.
Words hints_of(const fs::path& directory) {
  Words hints;
  bool inside = false;
  for (const std::string& line : split_lines(read_file(directory / "hints.md"))) {
    if (line.starts_with("<details>")) {
      hints.push_back("");
      inside = true;
    } else if (line.starts_with("</details>")) {
      inside = false;
    } else if (inside) {
      hints.back() += line + "\n";
    }
  }
  return hints;
}

int hint(const fs::path& directory, const fs::path& state) {
  const Words hints = hints_of(directory);
  size_t shown = 0;
  std::ifstream(state) >> shown;
  shown = std::min(shown + 1, hints.size());
  fs::create_directories(state.parent_path());
  std::ofstream(state) << shown;
  std::cout << "hint " << shown << " of " << hints.size() << "\n" << hints[shown - 1];
  if (shown < hints.size())
    std::cout << "\nmake hint-" << name_of(directory) << " shows the next\n";
  return 0;
}

int diff(const fs::path& directory) {
  const std::string mine = read_file(directory / "mine.cpp"),
                    solution = read_file(directory / "solution.cpp");
  std::cout << "- yours, + the solution\n"
            << difference(split_lines(mine), split_lines(solution));
  return 0;
}

// What a check's run must look like for the variant that SOURCE is.
int prove(const std::string& binary, const fs::path& source) {
  const std::string variant = source.stem();
  const ProcessResult result = run_process({binary}, "", 300);
  const bool passed = result.exit_code == 0 && !result.timed_out;
  const auto wrong = [&](const std::string& what) {
    std::cout << source.string() << ": " << what << "\n" << result.output;
    return 1;
  };
  if (variant == "solution") return passed ? 0 : wrong("the solution fails");
  if (passed) return wrong("passes, but must fail");
  if (variant == "start") return 0;
  const std::string first = split_lines(read_file(source)).at(0), mark = "// fails: ";
  if (!first.starts_with(mark)) return wrong("its first line must be // fails: NAME OF A CASE");
  const std::string name = first.substr(mark.size());
  if (result.output.find("  FAIL  " + name + "\n") == std::string::npos)
    return wrong("must fail in \"" + name + "\"");
  return 0;
}

int check_form(const fs::path& directory) {
  size_t wrongs = 0;
  for (const auto& entry : fs::directory_iterator(directory))
    wrongs += entry.path().filename().string().starts_with("wrong_");
  const auto need = [&](bool good, const std::string& what) {
    if (!good) fail(directory.string(), ": ", what);
  };
  const std::string title = title_of(directory);
  need(title.starts_with(name_of(directory) + " ★"),
       "exercise.h begins with // " + name_of(directory) + " ★ and its title, not " + title);
  need(count(read_file(directory / "start.cpp"), "TODO") == 1,
       "start.cpp has exactly one TODO");
  need(count(read_file(directory / "solution.cpp"), "TODO") == 0, "solution.cpp has a TODO");
  need(hints_of(directory).size() == 3, "hints.md has three <details> blocks");
  need(wrongs >= 2, "there are at least two wrong_*.cpp");
  return 0;
}

int progress(const Words& exercises) {
  size_t solved = 0;
  for (const std::string& exercise : exercises) {
    const size_t equals = exercise.find('=');
    const fs::path directory = exercise.substr(0, equals), mine = directory / "mine.cpp";
    const fs::path binary = exercise.substr(equals + 1);
    std::string state = "·         ";
    if (fs::exists(mine)) {
      const bool built =
          fs::exists(binary) && fs::last_write_time(binary) >= fs::last_write_time(mine);
      const bool passes = built && run_process({binary.string()}, "", 300).exit_code == 0;
      state = passes ? "solved    " : built ? "not yet   " : "no build  ";
      solved += passes;
    }
    std::cout << "  " << state << title_of(directory) << "\n";
  }
  std::cout << solved << " of " << exercises.size() << " solved\n";
  return 0;
}

int guard(const Words& words) {
  const ProcessResult result = run_process(words, "", 60);
  std::cout << result.output;
  if (result.timed_out)
    fail(words[0], " did not end within 60 seconds: does your answer loop?");
  if (result.signal)
    fail(words[0], " was ended by signal ", result.signal, "; make ex-NN says more");
  return result.exit_code;
}

int run(Words words) {
  if (words.size() < 2 && !(words.size() == 1 && words[0] == "progress"))
    fail("usage: see lessons/tools/exercise.cpp");
  const std::string command = words[0];
  words.erase(words.begin());
  if (command == "start") return start(words[0]);
  if (command == "hint") return hint(words[0], words.at(1));
  if (command == "diff") return diff(words[0]);
  if (command == "prove") return prove(words[0], words.at(1));
  if (command == "form") return check_form(words[0]);
  if (command == "progress") return progress(words);
  if (command == "guard") return guard(words);
  fail("exercise: no command ", command);
}

}  // namespace
}  // namespace tiny_compile::lessons

int main(int argc, char** argv) {
  try {
    return tiny_compile::lessons::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cout << std::flush;
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
