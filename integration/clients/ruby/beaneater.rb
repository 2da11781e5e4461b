# Plays flows of Beaneater: ruby beaneater.rb ADDRESS. Prints the flows that held.
require "beaneater"
require "json"

def same(want, got)
  raise "got #{got.inspect}, want #{want.inspect}" unless want == got
end

def thrown
  yield
  "nothing"
rescue StandardError => e
  e.class.name
end

address = ARGV[0]
client = Beaneater.new(address)

flows = {
  "puts" => lambda {
    tube = client.tubes["puts"]
    id = tube.put("hello\r\n", pri: 7, delay: 0, ttr: 90)[:id]
    same "hello\r\n", tube.peek(:ready).body
    client.tubes.watch!("puts")
    job = client.tubes.reserve(0)
    same [id, "hello\r\n", 7, 90, 0, true], [job.id, job.body, job.pri, job.ttr, job.delay, job.reserved?]
    job.touch
    job.release # it sends back the pri and the delay of stats-job
    job = tube.reserve(0)
    same ["reserved", 2, 1], [job.stats.state, job.stats.reserves, job.stats.releases]
    job.bury
    same 1, tube.stats.current_jobs_buried
    same id, tube.peek(:buried).id
    tube.kick(3)
    tube.reserve(0).delete
    same nil, tube.peek(:ready)
    same "Beaneater::TimedOutError", thrown { tube.reserve(0) }
    same "Beaneater::NotFoundError", thrown { client.tubes.find("never").stats }
  },
  "processes" => lambda {
    tries = Hash.new(0)
    done = []
    client.jobs.register("work", retry_on: [ArgumentError]) do |job|
      tries[job.body] += 1
      raise ArgumentError if job.body == "again" && tries[job.body] < 3
      raise "broken" if job.body == "broken"

      done << job.body
      raise Beaneater::AbortProcessingError if done.size == 2 # the last one
    end
    work = client.tubes["work"]
    %w[broken again fine].each { |body| work.put(body, pri: body == "fine" ? 9000 : 0) }
    begin
      client.jobs.process!(release_delay: 0, reserve_timeout: 5)
    rescue Beaneater::AbortProcessingError
      nil
    end
    same %w[again fine], done
    same 3, tries["again"]
    same "broken", work.peek(:buried).body
    client.tubes.reserve(0) if work.peek(:ready)
  },
  "clears" => lambda {
    tube = client.tubes["clear"]
    3.times { |i| tube.put(i.to_s) }
    tube.put("later", delay: 100)
    tube.clear
    left = begin
      tube.stats.current_jobs_ready + tube.stats.current_jobs_delayed
    rescue Beaneater::NotFoundError
      0 # an empty tube is gone
    end
    same 0, left
  },
  "lists" => lambda {
    client.tubes.use("l-1")
    client.tubes.watch!("l-1", "l-2")
    same %w[l-1 l-2], client.tubes.watched.map(&:name).sort
    same "l-1", client.tubes.used.name
    same true, client.tubes.all.map(&:name).include?("l-2")
    client.tubes["l-1"].pause(60)
    same 60, client.tubes["l-1"].stats.pause
    same true, client.stats.cmd_put.positive? && client.stats.total_jobs.positive?
    same false, client.stats.keys.any? { |key| client.stats[key].nil? }
  },
}

flows.each do |name, flow|
  flow.call
  puts name
end
