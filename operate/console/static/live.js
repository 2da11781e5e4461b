'use strict';
// The event stream of live pages. It runs in a SharedWorker, so that all tabs of a browser need one connection: over HTTP/1.1
// browsers limit the connections to a host to six. A browser without shared workers runs it in each page.
const followBroker = (base) => {
  const tabs = new Set();
  const retryEvery = 1000;
  let source = null;
  let turn = ''; // of the last change
  let up = false;
  let timer = 0;
  const notify = (message) => tabs.forEach((tab) => tab.postMessage(message));
  const close = () => { source?.close(); source = null; up = false; clearTimeout(timer); };
  const open = () => {
    if (source || tabs.size === 0) return;
    source = new EventSource(`${base}live?turn=${turn}`);
    source.onopen = () => { up = true; notify('up'); };
    source.onerror = () => { close(); notify('down'); timer = setTimeout(open, retryEvery); };
    source.addEventListener('changed', (e) => { turn = e.data; notify('changed'); });
  };
  return {
    join(tab, seen) { // seen is the turn of the page; a page of another turn may lack a change
      tabs.add(tab);
      if (!source) turn = seen;
      else if (seen !== turn) tab.postMessage('changed');
      if (up) tab.postMessage('up');
      open();
    },
    leave(tab) {
      tabs.delete(tab);
      if (tabs.size === 0) close();
    },
  };
};

if (typeof SharedWorkerGlobalScope !== 'undefined') {
  const stream = followBroker('../');
  self.onconnect = (e) => {
    const port = e.ports[0];
    port.onmessage = ({ data }) => (data.join ? stream.join(port, data.turn) : stream.leave(port));
  };
}
