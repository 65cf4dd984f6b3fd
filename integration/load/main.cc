// iggy-load: writes recognisable messages with a journal of what was acknowledged, reads them back as digests, compares
// two clusters.
#include <iostream>

#include <CLI/CLI.hpp>

#include "integration/load/commands.h"

namespace {

struct Place {
  std::string url, stream, topic, dialect;
};

// Exits with the reason when a flag can't be used.
iggy::ConnectionString parse_url(const std::string& text, const std::string& dialect) {
  auto parsed = iggy::parse_connection_string(text);
  if (!parsed) {
    std::cerr << "iggy-load: " << parsed.error().to_string() << "\n";
    std::exit(2);
  }
  if (dialect == "legacy") parsed->dialect = iggy::Dialect::kLegacy;
  if (dialect == "vsr") parsed->dialect = iggy::Dialect::kVsr11;
  return *parsed;
}

void need(const base::Status& status) {
  if (status) return;
  std::cerr << "iggy-load: " << status.error().to_string() << "\n";
  std::exit(2);
}

void add_place(CLI::App* verb, Place& place) {
  verb->add_option("--url", place.url, "iggy://user:password@host:port")->required();
  verb->add_option("--stream", place.stream)->required();
  verb->add_option("--topic", place.topic)->required();
  verb->add_option("--dialect", place.dialect, "legacy or vsr; probed without it")
      ->check(CLI::IsMember({"legacy", "vsr"}));
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("iggy-load: writer with a journal of acknowledgements, reader, comparer");
  app.require_subcommand(1);

  Place place;
  load::WriteOptions write;
  std::string size = "100", ids = "random", headers = "none", origin = "now";
  CLI::App* const write_verb = app.add_subcommand("write", "send messages to every partition in turn");
  add_place(write_verb, place);
  write_verb->add_flag("--create", write.create, "make stream and topic when they are missing");
  write_verb->add_option("--partitions", write.partitions, "for --create")->capture_default_str();
  write_verb->add_option("--partition", write.only_partition, "only this one");
  write_verb->add_option("--count", write.count, "messages in all")->required();
  write_verb->add_option("--rate", write.rate, "messages per second; 0 = as fast as it goes")->capture_default_str();
  write_verb->add_option("--batch", write.batch, "messages per send")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  write_verb->add_option("--size", size, "payload bytes: N, MIN-MAX or profile:mixed")->capture_default_str();
  write_verb->add_option("--ids", ids, "seq, random or zero:PERCENT")->capture_default_str();
  write_verb->add_option("--headers", headers, "none, kinds or garbage:PERCENT")->capture_default_str();
  write_verb->add_option("--origin", origin, "now or START+STEP, µs")->capture_default_str();
  write_verb->add_option("--seed", write.message.seed)->capture_default_str();
  write_verb->add_option("--first-seq", write.first_sequence, "of every partition")->capture_default_str();
  write_verb->add_option("--journal", write.journal, "append a line per message, fsynced per acknowledged batch");
  write_verb->add_flag("--retry", write.retry,
                       "survive restarts; batches of unknown outcome are noted, not sent again");

  load::ReadOptions read;
  CLI::App* const read_verb = app.add_subcommand("read", "print one line per message and a summary per partition");
  add_place(read_verb, place);
  read_verb->add_option("--partition", read.partition, "only this one");
  read_verb->add_option("--out", read.out, "file for the message lines");
  read_verb->add_flag("--quiet", read.quiet, "summaries only");

  load::CompareOptions compare;
  std::string url_a, url_b, stream, topic, b_stream, b_topic;
  CLI::App* const compare_verb = app.add_subcommand("compare", "exit 0 only when b holds what a holds, in order");
  compare_verb->add_option("--a", url_a)->required();
  compare_verb->add_option("--b", url_b)->required();
  compare_verb->add_option("--stream", stream)->required();
  compare_verb->add_option("--topic", topic)->required();
  compare_verb->add_option("--b-stream", b_stream);
  compare_verb->add_option("--b-topic", b_topic);
  compare_verb->add_flag("--ignore-zero-ids", compare.ignore_zero_ids,
                         "messages with id 0 in a are compared without id");
  compare_verb->add_flag("--prefix", compare.prefix, "b may end early");

  load::ManageOptions manage;
  std::string manage_url;
  CLI::App* const manage_verb = app.add_subcommand("manage", "what an operator of the cluster does");
  manage_verb->require_subcommand(1);
  manage_verb->add_option("--url", manage_url)->required();
  const auto deed = [&](const char* name, load::Deed which, const char* help) {
    CLI::App* const verb = manage_verb->add_subcommand(name, help);
    verb->callback([&manage, which] { manage.deed = which; });
    return verb;
  };
  const auto topic_deed = [&](const char* name, load::Deed which, const char* help) {
    CLI::App* const verb = deed(name, which, help);
    verb->add_option("STREAM", manage.topic.stream)->required();
    verb->add_option("TOPIC", manage.topic.topic)->required();
    return verb;
  };
  CLI::App* const create = topic_deed("create-topic", load::Deed::kCreateTopic, "its stream as well");
  create->add_option("--partitions", manage.partitions)->capture_default_str();
  create->add_option("--expiry", manage.expiry_seconds, "seconds; 0 = never")->capture_default_str();
  topic_deed("delete-topic", load::Deed::kDeleteTopic, "with its messages");
  topic_deed("purge-topic", load::Deed::kPurgeTopic, "its messages");
  topic_deed("add-partitions", load::Deed::kAddPartitions, "behind those that are there")
      ->add_option("COUNT", manage.partitions)
      ->required();
  topic_deed("stored-offset", load::Deed::kStoredOffset, "prints those of a consumer, a line per partition")
      ->add_option("CONSUMER", manage.name)
      ->required();
  CLI::App* const user =
      deed("create-user", load::Deed::kCreateUser, "with rights, everywhere or on a stream or topic");
  user->add_option("NAME", manage.name)->required();
  user->add_option("PASSWORD", manage.password)->required();
  user->add_option("--rights", manage.rights, "poll_messages,orders:read_stream,orders/events:send_messages,… or none")
      ->capture_default_str();
  CLI::App* const rights = deed("set-rights", load::Deed::kSetRights, "replaces all rights of a user");
  rights->add_option("NAME", manage.name)->required();
  rights->add_option("RIGHTS", manage.rights)->required();
  deed("delete-user", load::Deed::kDeleteUser, "and end its logins")->add_option("NAME", manage.name)->required();
  deed("create-token", load::Deed::kCreateToken, "prints a personal access token of the user in the URL")
      ->add_option("NAME", manage.name)
      ->required();
  const auto offset_deed = [&](const char* name, load::Deed which, const char* help) {
    CLI::App* const verb = topic_deed(name, which, help);
    verb->add_option("PARTITION", manage.partition)->required();
    verb->add_option("NAME", manage.name)->required();
    return verb;
  };
  CLI::App* const storing = offset_deed("store-offset", load::Deed::kStoreOffset, "of a consumer");
  storing->add_option("OFFSET", manage.offset)->required();
  storing->add_flag("--group", manage.group, "of a group, which is made and joined for it");
  offset_deed("get-offset", load::Deed::kGetOffset, "prints it, or none")->add_flag("--group", manage.group);
  offset_deed("delete-offset", load::Deed::kDeleteOffset, "of a consumer");
  CLI11_PARSE(app, argc, argv);

  if (*manage_verb) {
    manage.url = parse_url(manage_url, "");
    return load::run_manage(manage);
  }
  if (*write_verb) {
    write.url = parse_url(place.url, place.dialect);
    write.topic = {place.stream, place.topic};
    need(load::parse_size(size, write.message));
    need(load::parse_ids(ids, write.message));
    need(load::parse_headers(headers, write.message));
    need(load::parse_origin(origin, write.message));
    return load::run_write(write);
  }
  if (*read_verb) {
    read.url = parse_url(place.url, place.dialect);
    read.topic = {place.stream, place.topic};
    return load::run_read(read);
  }
  compare.a = parse_url(url_a, "");
  compare.b = parse_url(url_b, "");
  compare.topic_a = {stream, topic};
  compare.topic_b = {b_stream.empty() ? stream : b_stream, b_topic.empty() ? topic : b_topic};
  return load::run_compare(compare);
}
