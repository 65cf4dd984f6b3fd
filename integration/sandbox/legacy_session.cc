// Server 0.8.0: | length | code | payload |, answered strictly in order.
#include <utility>

#include "base/digest.h"
#include "iggy/codec/legacy.h"
#include "integration/sandbox/session.h"

namespace sandbox {
namespace {

constexpr std::uint32_t kSendMessages = 101;
constexpr std::size_t kMaxPayload = 10 * kMiB;  // of everything but sends

class LegacySession final : public Session {
 public:
  LegacySession(Services& services, Wire& wire, std::string peer) : services_(services), wire_(wire) {
    caller_.client_id = base::xxh32(base::as_bytes(peer));
    caller_.address = std::move(peer);
    caller_.listed = true;
    services_.broker.connect(caller_);
  }
  ~LegacySession() override { services_.broker.disconnect(caller_); }
  LegacySession(const LegacySession&) = delete;
  LegacySession& operator=(const LegacySession&) = delete;

  std::size_t header_size() const override { return iggy::legacy::kHeaderSize; }
  std::optional<std::size_t> body_size(base::ByteView bytes) override {
    const auto header = iggy::legacy::read_request_header(bytes);
    if (header.length < 4) return 0;
    const std::size_t payload = header.length - 4;
    // Refused without draining what may follow.
    if (header.code != kSendMessages && payload > kMaxPayload) return 0;
    if (header.code == kSendMessages && !caller_.user) return 0;
    return payload;
  }
  void request(base::ByteView bytes, std::shared_ptr<base::Buffer> body) override;
  void goodbye() override { refuse_with(status::kDisconnected); }

 private:
  void refuse_with(std::uint32_t code) { wire_.answer(iggy::legacy::encode_error(code)); }
  void reply(const iggy::Reply& value) { wire_.answer(iggy::legacy::encode_reply(value)); }
  template <class T>
  void login(const T& request) {
    if (caller_.user) services_.broker.logout(caller_);
    const Outcome<std::uint32_t> user = services_.broker.login(caller_, request);
    user ? reply(iggy::LoggedIn{.user_id = *user, .server_version = {}}) : refuse_with(user.error());
  }
  void poll(const iggy::PollMessages& request);
  void send(const iggy::SendMessages& request, std::shared_ptr<base::Buffer> body);
  void out_of_step(base::ByteView payload);

  Services& services_;
  Wire& wire_;
  Caller caller_;
};

void LegacySession::request(base::ByteView bytes, std::shared_ptr<base::Buffer> body) {
  const auto header = iggy::legacy::read_request_header(bytes);
  if (header.length < 4 || (header.code != kSendMessages && header.length - 4 > kMaxPayload))
    return refuse_with(status::kInvalidCommand);
  if (header.code == kSendMessages && !caller_.user) return refuse_with(status::kUnauthenticated);
  auto request = iggy::legacy::decode_request(header.code, body->view());
  if (!request) {
    services_.faults.count("malformed");
    const std::uint32_t code = request.error().wire_status();
    refuse_with(caller_.user || code == status::kInvalidCommand ? code : status::kUnauthenticated);
    if (header.code == kSendMessages && (code == 3 || code == 6 || code == 82)) out_of_step(body->view());
    return;
  }
  services_.faults.count(iggy::name_of(*request));
  if (std::holds_alternative<iggy::Ping>(*request)) return reply(iggy::Done{});
  if (const auto* by_password = std::get_if<iggy::LoginUser>(&*request)) return login(*by_password);
  if (const auto* by_token = std::get_if<iggy::LoginToken>(&*request)) return login(*by_token);
  if (!caller_.user) return refuse_with(status::kUnauthenticated);
  if (const auto* poll_request = std::get_if<iggy::PollMessages>(&*request)) return poll(*poll_request);
  if (const auto* send_request = std::get_if<iggy::SendMessages>(&*request))
    return send(*send_request, std::move(body));
  if (std::holds_alternative<iggy::Logout>(*request)) {
    services_.broker.logout(caller_);
    return reply(iggy::Done{});
  }
  if (std::holds_alternative<iggy::GetClusterMetadata>(*request)) return reply(services_.cluster());
  const Outcome<iggy::Reply> answer = services_.broker.handle(caller_, *request);
  answer ? reply(*answer) : refuse_with(answer.error());
}

// The server read the metadata in steps and gave up between two of them: the rest is parsed as frames.
void LegacySession::out_of_step(base::ByteView payload) {
  base::ByteReader reader(payload);
  const std::uint32_t metadata = reader.u32();
  if (!reader.ok()) return;
  if (metadata <= reader.remaining()) reader.skip(metadata);
  wire_.unread(reader.rest());
}

void LegacySession::poll(const iggy::PollMessages& request) {
  if (services_.faults.next_poll_is_refused()) return refuse_with(services_.faults.poll_refuse_status);
  Outcome<PollResult> polled = services_.broker.poll(caller_, request);
  if (!polled) return refuse_with(polled.error());
  // The head as the codec writes it, then the stored messages as they are.
  base::Bytes head = iggy::legacy::encode_reply(
      iggy::PolledMessages{.partition = polled->partition, .current_offset = polled->current_offset, .batch = {}});
  std::size_t size = head.size() - iggy::legacy::kHeaderSize;
  for (const Chunk& chunk : polled->chunks) size += chunk.bytes.size();
  base::store(head.data() + 4, static_cast<std::uint32_t>(size));
  base::store(head.data() + iggy::legacy::kHeaderSize + 12, polled->count);
  wire_.answer(std::move(head), std::move(polled->chunks));
}

void LegacySession::send(const iggy::SendMessages& request, std::shared_ptr<base::Buffer> body) {
  const SendFate fate = services_.faults.next_send();
  if (fate == SendFate::kCutBefore) return wire_.cut();
  if (fate == SendFate::kRefused) return refuse_with(services_.faults.refuse_status);
  const Outcome<SendResult> sent = services_.broker.send(caller_, request, std::move(body), 0);
  if (fate == SendFate::kCutAfter) return wire_.cut();
  // Answers come in order, so one that never comes holds back all later ones.
  if (fate == SendFate::kDropReply) return wire_.hang();
  sent ? reply(iggy::SendConfirmed{}) : refuse_with(sent.error());
}

}  // namespace

std::unique_ptr<Session> make_legacy_session(Services& services, Wire& wire, std::string peer) {
  return std::make_unique<LegacySession>(services, wire, std::move(peer));
}

}  // namespace sandbox
