// Answers requests that Node.js cannot read. Its own answers have no body, so that people see an empty page.
import type http from 'node:http';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

const STATUSES: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
};

/** @param maxHeaderBytes the limit of the server, for the text. */
export function answerClientErrors(server: http.Server, maxHeaderBytes: number): void {
  server.on('clientError', ({ code = '' }: NodeJS.ErrnoException, socket: Duplex) => {
    // As Node.js does: a connection that is gone, or in the middle of an answer, is closed without a word.
    const { bytesWritten = 0, _httpMessage: answering } = socket as {
      bytesWritten?: number;
      /** Node.js keeps the answer that is being written here. */
      _httpMessage?: { headersSent: boolean };
    };
    if (!socket.writable || code === 'ECONNRESET' || (bytesWritten > 0 && answering?.headersSent === true))
      return void socket.destroy();
    const status = STATUSES[code] ?? 400;
    const text = status === 431 ? tooLong(maxHeaderBytes) : '';
    socket.end(
      [
        `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
        'Connection: close',
        'Cache-Control: no-store',
        'Content-Type: text/plain; charset=utf-8',
        'X-Content-Type-Options: nosniff',
        `Content-Length: ${Buffer.byteLength(text)}`,
        '',
        text,
      ].join('\r\n'),
      () => socket.destroy(),
    );
  });
}

/** RFC 6585 §5: the response should say which field is too large; Node.js does not know. */
function tooLong(maxHeaderBytes: number): string {
  return `The headers of the request are longer than ${maxHeaderBytes / 1024} KiB. Mostly these are cookies: a browser sends those of every application on the same host, whatever its port. Delete the cookies of this host, or use a host of its own.\n`;
}
