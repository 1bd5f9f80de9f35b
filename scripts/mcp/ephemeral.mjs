// Loaded before an npm server (node --import …/ephemeral.mjs SERVER): whatever it listens on becomes a free port of 127.0.0.1, and
// the line "listening on PORT" on standard output says which. Tests can so start many at once; the servers themselves listen on a
// fixed port of every interface.
import { Server } from 'node:net';

const listen = Server.prototype.listen;
Server.prototype.listen = function (...args) {
  const callback = args.find((arg) => typeof arg === 'function');
  this.once('listening', () => process.stdout.write(`listening on ${this.address().port}\n`));
  return listen.call(this, { port: 0, host: '127.0.0.1' }, callback);
};
