// Reads a form with a file (RFC 7578): fields and one file, both small, held in memory.
import type { IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import type { BusboyHeaders } from '@fastify/busboy';
import type { Context, Middleware } from 'koa';
import { AuthError } from '../errors.ts';

interface MultipartForm {
  fields: Record<string, string>;
  /** The bytes of the file and the name of its field; undefined when none was sent. */
  file: { field: string; data: Buffer } | undefined;
}

export interface MultipartRules {
  /** The maximum size of the file, bytes. */
  maxBytes: number;
  /** The description of the 413 for a larger file. */
  tooLarge: string;
}

/** The maximum size of boundaries and fields beside the file, bytes. */
const MAX_OVERHEAD_BYTES = 16 * 1024;
const LIMITS = { fields: 20, fieldSize: 4096, fieldNameSize: 100, files: 1, parts: 21, headerPairs: 20 };

/**
 * Returns the reader of a route's forms with a file. It leaves an object at `ctx.request.body`: the fields, and the
 * file's text under the name of its field, which {@link bodyWithoutFile} leaves out.
 * @param other reads bodies of other types.
 */
export function readFormWithFile(rules: MultipartRules, other: Middleware): Middleware {
  return async (ctx, next) => {
    if (!isMultipart(ctx)) return other(ctx, next);
    const { fields, file } = await readMultipart(ctx.req, rules);
    const text = file === undefined ? {} : { [file.field]: file.data.toString('utf8') };
    Object.assign(ctx.request, { body: { ...fields, ...text }, fileField: file?.field });
    return next();
  };
}

/** Reports whether the body of a request is a form that can contain files. */
export function isMultipart({ headers }: Pick<Context, 'headers'>): boolean {
  return /^multipart\/form-data\s*;/i.test(headers['content-type'] ?? '');
}

/** @throws AuthError 400 for a malformed form, 413 for a file that is too large. */
function readMultipart(request: IncomingMessage, rules: MultipartRules): Promise<MultipartForm> {
  const { maxBytes, tooLarge } = rules;
  const tooLargeError = () => new AuthError(413, 'invalid_request', tooLarge);
  if (Number(request.headers['content-length'] ?? 0) > maxBytes + MAX_OVERHEAD_BYTES)
    return Promise.reject(tooLargeError());
  return new Promise((resolve, reject) => {
    const form: MultipartForm = { fields: Object.create(null) as Record<string, string>, file: undefined };
    const parser = parserOf(request, maxBytes, reject);
    if (parser === undefined) return;
    const fail = (error: AuthError) => {
      request.unpipe(parser);
      reject(error);
    };
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes + MAX_OVERHEAD_BYTES) fail(tooLargeError());
    });
    request.once('aborted', () => fail(unreadable()));
    parser.on('field', (name, value, nameCut, valueCut) => {
      if (nameCut || valueCut) fail(unreadable());
      form.fields[name] = value;
    });
    parser.on('file', (field, stream) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('limit', () => fail(tooLargeError()));
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

function parserOf(request: IncomingMessage, maxBytes: number, reject: (error: AuthError) => void) {
  try {
    // One byte more than is allowed: the parser reports a file that reaches its limit.
    const limits = { ...LIMITS, fileSize: maxBytes + 1 };
    // Loaded with the first file: few servers are ever sent one.
    const { Busboy } = createRequire(import.meta.url)('@fastify/busboy') as typeof import('@fastify/busboy');
    return new Busboy({ headers: request.headers as BusboyHeaders, limits });
  } catch {
    // The message of the parser would quote the header.
    reject(unreadable());
    return undefined;
  }
}

function unreadable(): AuthError {
  return new AuthError(400, 'invalid_request', 'The form could not be read.');
}
