# Works on the queue greet until it is stopped: ruby worker.rb

require "securerandom"
require_relative "faktory"

$stdout.sync = true
WID = SecureRandom.hex(8)

# Works until the connection ends.
def work
  faktory = Faktory.new(wid: WID, hostname: Socket.gethostname, pid: Process.pid, labels: ["ruby"])
  beat_at = Time.now
  loop do
    if Time.now - beat_at > 15 # the broker forgets workers that are silent for a minute
      faktory.command("BEAT", { wid: WID })
      beat_at = Time.now
    end
    text = faktory.command("FETCH", "greet") or next # there was no job for two seconds
    job = JSON.parse(text)
    begin
      puts "Hello, #{job["args"][0]}"
      faktory.command("ACK", { jid: job["jid"] })
    rescue StandardError => e
      faktory.command("FAIL", { jid: job["jid"], errtype: e.class.name, message: e.message, backtrace: e.backtrace.first(10) })
    end
  end
end

loop do
  work
rescue SystemCallError, IOError, RuntimeError => e # the broker may be restarted
  warn "trying again in a second: #{e.message}"
  sleep 1
end
