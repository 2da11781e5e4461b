# The few commands of the Faktory protocol that the example needs, with Ruby's own libraries.

require "digest"
require "json"
require "socket"
require "uri"

class Faktory
  def initialize(hello = {})
    url = URI(ENV.fetch("FAKTORY_URL", "tcp://127.0.0.1:7419"))
    @socket = TCPSocket.new(url.host, url.port)
    hi = JSON.parse(reply.delete_prefix("HI "))
    if hi["s"] # the broker wants a password
      hash = url.password.to_s + hi["s"]
      hi["i"].times { hash = Digest::SHA256.digest(hash) }
      hello = hello.merge(pwdhash: hash.unpack1("H*"))
    end
    command("HELLO", hello.merge(v: 2))
  end

  # Sends a command and returns its reply: a string, or nil.
  def command(name, argument)
    @socket.write(name, " ", argument.is_a?(String) ? argument : JSON.generate(argument), "\r\n")
    reply
  end

  private

  def reply
    line = @socket.gets or raise IOError, "the broker closed the connection"
    kind, rest = line[0], line[1..].chomp
    raise rest if kind == "-"
    return rest if kind == "+"
    return nil if rest == "-1"
    @socket.read(rest.to_i + 2).chomp.force_encoding("UTF-8")
  end
end
