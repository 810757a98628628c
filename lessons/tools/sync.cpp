// Do the lessons still say what the code says? Rewrites the marked blocks of Markdown files, or
// with --check changes nothing and prints what has drifted.
//
//   build/lessons/sync [--check] FILE.md ...
//
//   <!-- code: PATH#NAME -->       the definition of NAME; without #NAME the whole file
//   <!-- run: build/PROGRAM ARGUMENTS -->      what it prints; "| mermaid" or "| markdown" behind it
//                                              shows the output as that
//   <!-- record: FILE.json#ROW FIELD, ... -->   a table of a dated measurement
//   <!-- end -->
//
// Runs in the repository's root.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "lessons/tools/blocks.h"
#include "lessons/tools/links.h"
#include "lessons/tools/quote.h"
#include "lessons/tools/record.h"
#include "tiny_compile/base/error.h"
#include "tiny_compile/runtime/process.h"

namespace tiny_compile::lessons {
namespace {

namespace fs = std::filesystem;

struct Settings {
  bool check = false;
  std::vector<std::string> files;
};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in || fs::is_directory(path)) fail("there is no ", path);
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

std::string language_of(const std::string& path) {
  const std::string extension = fs::path(path).extension();
  if (extension == ".h" || extension == ".cpp" || extension == ".cu") return "cpp";
  if (extension == ".py") return "python";
  if (extension == ".mk") return "make";
  return "";
}

std::string fenced(const std::string& language, const std::string& text) {
  return "```" + language + "\n" + text + (text.ends_with('\n') ? "" : "\n") + "```\n";
}

// A page of text whose blocks are made afresh.
class Page {
 public:
  Page(std::string path, std::map<std::string, std::string>& outputs)
      : path_(std::move(path)), lines_(split_lines(read_file(path_))), outputs_(outputs) {}

  // The page as it should read; what is wrong goes to `problems`.
  Lines fresh(std::vector<std::string>& problems) {
    Lines result;
    size_t at = 0;
    for (const Block& block : find_blocks(path_, lines_)) {
      result.insert(result.end(), lines_.begin() + long(at),
                    lines_.begin() + long(block.first));
      const Lines stored(lines_.begin() + long(block.first), lines_.begin() + long(block.last));
      at = block.last;
      const Lines made = renew(block, stored, problems);
      result.insert(result.end(), made.begin(), made.end());
    }
    result.insert(result.end(), lines_.begin() + long(at), lines_.end());
    return result;
  }
  const Lines& stored() const { return lines_; }

 private:
  Lines renew(const Block& block, const Lines& stored, std::vector<std::string>& problems) {
    if (block.kind == "record" && block.argument.find('#') == std::string::npos)
      return stored;  // make bench-table writes that one
    try {
      const Lines made = split_lines(render(block));
      return covers(stored, made) ? stored : merge(stored, made);
    } catch (const Error& error) {
      problems.push_back(str(path_, ":", block.first, ": ", error.what()));
      return stored;
    }
  }

  std::string render(const Block& block) {
    if (block.kind == "run") return render_run(block.argument);
    const size_t hash = block.argument.find('#');
    const std::string file = block.argument.substr(0, hash);
    const std::string text = read_file(file);
    if (block.kind == "record") return render_record(text, block.argument);
    const std::string shown =
        hash == std::string::npos ? text : quote(file, text, block.argument.substr(hash + 1));
    const std::string link = fs::path(file).lexically_relative(fs::path(path_).parent_path());
    return fenced(language_of(file), shown) + "<sub>[" + file + "](" + link + ")</sub>\n";
  }

  std::string render_run(const std::string& argument) {
    const size_t bar = argument.find(" | ");
    const std::string form = bar == std::string::npos ? "" : argument.substr(bar + 3);
    const std::string command = argument.substr(0, bar);
    const std::string& output = output_of(command);
    if (form == "markdown") return output;
    if (!form.empty()) return fenced(form, output);
    return fenced("", "$ " + command + "\n" + output);
  }

  const std::string& output_of(const std::string& command) {
    const auto known = outputs_.find(command);
    if (known != outputs_.end()) return known->second;
    std::istringstream in(command);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    if (!command.starts_with("build/")) fail("only programs in build/ are run, not ", command);
    const ProcessResult result = run_process(
        words, "", 120,
        {"TC_CACHE_DIR=build/lessons/cache", "LC_ALL=C", "OMP_WAIT_POLICY=passive"});
    if (result.exit_code != 0 || result.timed_out)
      fail(command, result.timed_out ? " did not end" : " failed", ":\n", result.output);
    return outputs_[command] = result.output;
  }

  std::string path_;
  Lines lines_;
  std::map<std::string, std::string>& outputs_;
};

Settings parse(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; i++) {
    const std::string word = argv[i];
    if (word == "--check")
      settings.check = true;
    else
      settings.files.push_back(word);
  }
  return settings;
}

int run(const Settings& settings) {
  std::map<std::string, std::string> outputs;
  std::vector<std::string> problems;
  int changed = 0;
  for (const std::string& path : settings.files) {
    Page page(path, outputs);
    const Lines fresh = page.fresh(problems);
    for (const std::string& dead : dead_links(path, fresh)) problems.push_back(dead);
    if (fresh == page.stored()) continue;
    changed++;
    std::cout << path
              << (settings.check ? " has drifted; make lessons rewrites it:\n"
                                 : " rewritten:\n")
              << difference(page.stored(), fresh);
    if (!settings.check) std::ofstream(path, std::ios::binary) << join_lines(fresh);
  }
  for (const std::string& problem : problems) std::cout << problem << "\n";
  const bool good = problems.empty() && (changed == 0 || !settings.check);
  if (good) std::cout << "lessons: " << settings.files.size() << " pages, all in step\n";
  return good ? 0 : 1;
}

}  // namespace
}  // namespace tiny_compile::lessons

int main(int argc, char** argv) {
  try {
    return tiny_compile::lessons::run(tiny_compile::lessons::parse(argc, argv));
  } catch (const tiny_compile::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
