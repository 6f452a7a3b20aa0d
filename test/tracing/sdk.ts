// Replaces an SDK of OpenTelemetry: writes each span to a file when it ends, one per line.
import { AsyncLocalStorage } from 'node:async_hooks';
import { randomBytes } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import {
  type Attributes,
  type Context,
  type ContextManager,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  type SpanOptions,
  type SpanStatus,
  trace,
} from '@opentelemetry/api';

const running = new AsyncLocalStorage<Context>();

context.setGlobalContextManager({
  active: () => running.getStore() ?? ROOT_CONTEXT,
  with: (of: Context, work: () => unknown) => running.run(of, work),
} as unknown as ContextManager);

// `traceparent` (W3C Trace Context §3.2).
propagation.setGlobalPropagator({
  inject: () => undefined,
  extract: (of, carrier, getter) => {
    const sent = String(getter.get(carrier, 'traceparent'));
    const [, traceId, spanId] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-/.exec(sent) ?? [];
    if (traceId === undefined || spanId === undefined) return of;
    return trace.setSpanContext(of, { traceId, spanId, traceFlags: 1, isRemote: true });
  },
  fields: () => ['traceparent'],
});

/** A span that writes itself to the file when it ends. */
function startSpan(name: string, { attributes }: SpanOptions = {}, of = context.active()): Span {
  const parent = trace.getSpanContext(of);
  const own = {
    traceId: parent?.traceId ?? randomBytes(16).toString('hex'),
    spanId: randomBytes(8).toString('hex'),
    traceFlags: 1,
  };
  const told = { name, attributes: { ...attributes } as Attributes, parent: parent?.spanId, status: 0 };
  return {
    spanContext: () => own,
    setAttribute: (key: string, value: string) => Object.assign(told.attributes, { [key]: value }),
    setAttributes: (more: Attributes) => Object.assign(told.attributes, more),
    setStatus: ({ code }: SpanStatus) => Object.assign(told, { status: code }),
    updateName: (changed: string) => Object.assign(told, { name: changed }),
    end: () => appendFileSync(process.env.SPANS ?? '', `${JSON.stringify({ ...own, ...told })}\n`),
  } as unknown as Span;
}

trace.setGlobalTracerProvider({
  getTracer: () => ({
    startSpan,
    startActiveSpan: (name: string, options: unknown, work?: unknown) => {
      const span = startSpan(name, options as SpanOptions);
      return context.with(trace.setSpan(context.active(), span), () => (work as (of: Span) => never)(span));
    },
  }),
});
