# Submits a job to the queue greet: ruby producer.rb [NAME]

require "securerandom"
require_relative "faktory"

job = { jid: SecureRandom.hex(12), jobtype: "greet", queue: "greet", args: [ARGV[0] || "Ruby"] }
Faktory.new.command("PUSH", job)
puts "submitted #{job[:jid]}"
