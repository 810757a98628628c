// Files written whole or not at all: links, modes, full disks, limits, kill -9.
#include "tiny_compile/base/output_file.h"

#include <sys/resource.h>

#include <random>

#include "tests/catch.h"
#include "tests/runtime/scratch.h"

using namespace tiny_compile;
using namespace tiny_compile::tests;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("a file holds its pieces, with the mode of the one before", "[output_file]") {
  const Scratch scratch;
  const std::string path = scratch.path("x");
  write_whole(path, {"one", "", "two"});
  CHECK(text_of(path) == "onetwo");
  chmod(path.c_str(), 0640);
  write_whole(path, {});
  CHECK(text_of(path).empty());
  struct stat status = {};
  stat(path.c_str(), &status);
  CHECK((status.st_mode & 07777) == 0640);
  CHECK(count_in(scratch.path("")) == 1);
}

TEST_CASE("a link stays one, what it leads to is replaced", "[output_file]") {
  const Scratch scratch;
  write_text(scratch.path("real"), "old");
  REQUIRE(symlink("real", scratch.path("link").c_str()) == 0);
  write_whole(scratch.path("link"), {"new"});
  CHECK(std::filesystem::is_symlink(scratch.path("link")));
  CHECK(text_of(scratch.path("real")) == "new");
}

TEST_CASE("what cannot be written says why and leaves nothing", "[output_file]") {
  const Scratch scratch;
  CHECK_THROWS_WITH(write_whole(scratch.path("none/x"), {"a"}),
                    ContainsSubstring("cannot write") && ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(write_whole(scratch.path(""), {"a"}), ContainsSubstring("directory"));
  CHECK_THROWS_WITH(write_whole("/dev/full", {"a"}), ContainsSubstring("No space left"));
  CHECK(count_in(scratch.path("")) == 0);
}

TEST_CASE("a file above the process's limit is an error, the old one stays", "[output_file]") {
  const Scratch scratch;
  const std::string path = scratch.path("x");
  write_whole(path, {"old"});
  const int code = in_child([&] {
    const rlimit most = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &most);
    const std::string message =
        message_of([&] { write_whole(path, {std::string(2000, 'n')}); });
    const bool told = message.find("File too large") != std::string::npos &&
                      message.find("is as it was") != std::string::npos;
    return told ? 7 : 1;
  });
  CHECK(code == 7);
  CHECK(text_of(path) == "old");
  CHECK(count_in(scratch.path("")) == 1);
}

TEST_CASE("a full disk is an error, the old file stays", "[output_file]") {
  const Scratch scratch;
  const int code = in_child([&] {
    if (!mount_small(scratch.path(""), "size=64k")) return kNotAllowed;
    const std::string path = scratch.path("x");
    write_whole(path, {"old"});
    const std::string message =
        message_of([&] { write_whole(path, {std::string(100'000, 'n')}); });
    const bool told = message.find("No space left") != std::string::npos;
    return told && text_of(path) == "old" && count_in(scratch.path("")) == 1 ? 7 : 1;
  });
  if (code == kNotAllowed) SKIP("mounting is not allowed");
  CHECK(code == 7);
}

TEST_CASE("kill -9 at any moment leaves the old or the new file whole", "[output_file]") {
  const Scratch scratch;
  const std::string path = scratch.path("x");
  write_whole(path, {std::string(300'000, 'a')});
  const auto number_of = [&] {
    struct stat status = {};
    stat(path.c_str(), &status);
    return status.st_ino;
  };
  std::mt19937_64 random(1);
  for (int turn = 0; turn < 40; turn++) {
    const auto before = number_of();
    const Child child([&] {
      for (int version = 1;; version++) {
        const std::string text(300'000, static_cast<char>('a' + version % 26));
        write_whole(path, {text, text});
      }
      return 0;
    });
    for (int wait = 0; wait < 50'000 && number_of() == before; wait++) usleep(100);
    usleep(static_cast<useconds_t>(random() % 5000));
    kill(child.pid(), SIGKILL);
    child.wait();
    const std::string text = text_of(path);
    REQUIRE(text.size() == 600'000);
    REQUIRE(text.find_first_not_of(text[0]) == std::string::npos);
  }
}
