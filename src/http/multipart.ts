// Reads a form with a file (RFC 7578): fields and one file, both small, held in memory.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import type { BusboyHeaders } from '@fastify/busboy';
import { AuthError } from './errors.ts';

/** What a form holds. */
interface MultipartForm {
  fields: Record<string, string>;
  /** The bytes of the file, by the name of its field; undefined where none was sent. */
  file: { field: string; data: Buffer } | undefined;
}

/** What a form may hold. */
export interface MultipartRules {
  /** The largest file, bytes. */
  largest: number;
  /** The words of the 413 for a larger one. */
  tooLarge: string;
}

/** Bytes that boundaries and fields may have beside the file. */
const BESIDE = 16 * 1024;
const LIMITS = { fields: 20, fieldSize: 4096, fieldNameSize: 100, files: 1, parts: 21, headerPairs: 20 };

/**
 * Reads a form.
 * @throws AuthError 400 for what is none, 413 for a larger file.
 */
export function readMultipart(request: IncomingMessage, rules: MultipartRules): Promise<MultipartForm> {
  const { largest, tooLarge } = rules;
  const tooMuch = () => new AuthError(413, 'invalid_request', tooLarge);
  if (!isMultipart(request.headers)) {
    const message = 'The request must be multipart/form-data.';
    return Promise.reject(new AuthError(400, 'invalid_request', message));
  }
  if (Number(request.headers['content-length'] ?? 0) > largest + BESIDE) return Promise.reject(tooMuch());
  return new Promise((resolve, reject) => {
    const form: MultipartForm = { fields: Object.create(null) as Record<string, string>, file: undefined };
    const parser = parserOf(request, largest, reject);
    if (parser === undefined) return;
    const fail = (error: AuthError) => {
      request.unpipe(parser);
      reject(error);
    };
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > largest + BESIDE) fail(tooMuch());
    });
    request.once('aborted', () => fail(unreadable()));
    parser.on('field', (name, value, nameCut, valueCut) => {
      if (nameCut || valueCut) fail(unreadable());
      form.fields[name] = value;
    });
    parser.on('file', (field, stream) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('limit', () => fail(tooMuch()));
      stream.on('end', () => {
        form.file = { field, data: Buffer.concat(chunks) };
      });
    });
    for (const event of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const) {
      parser.on(event, () => fail(unreadable()));
    }
    parser.on('error', () => fail(unreadable()));
    parser.on('finish', () => resolve(form));
    request.pipe(parser);
  });
}

function isMultipart(headers: IncomingHttpHeaders): boolean {
  return /^multipart\/form-data\s*;/i.test(headers['content-type'] ?? '');
}

function parserOf(request: IncomingMessage, largest: number, reject: (error: AuthError) => void) {
  try {
    // One byte more than is allowed: the limit tells of a file that reaches it.
    const limits = { ...LIMITS, fileSize: largest + 1 };
    // Read with the first file: only the Management API takes any.
    const { Busboy } = createRequire(import.meta.url)('@fastify/busboy') as typeof import('@fastify/busboy');
    return new Busboy({ headers: request.headers as BusboyHeaders, limits });
  } catch {
    // Its message would quote the header.
    reject(unreadable());
    return undefined;
  }
}

function unreadable(): AuthError {
  return new AuthError(400, 'invalid_request', 'The form could not be read.');
}
