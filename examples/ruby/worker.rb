# Works on the queue greet until it is stopped: ruby worker.rb

require "securerandom"
require_relative "faktory"

$stdout.sync = true
wid = SecureRandom.hex(8)
faktory = Faktory.new(wid: wid, hostname: Socket.gethostname, pid: Process.pid, labels: ["ruby"])
beat_at = Time.now

loop do
  if Time.now - beat_at > 15 # the broker forgets workers that are silent for a minute
    faktory.command("BEAT", { wid: wid })
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
