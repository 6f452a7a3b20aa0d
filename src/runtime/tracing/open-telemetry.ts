// Traces with OpenTelemetry, through its API only. The SDK, which collects and sends them, is registered by the
// operator before the server is loaded; without one no spans are made.
import {
  context,
  isSpanContextValid,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import type { Tracing } from '../tracing.ts';
import { VERSION } from '../version.ts';

/** @returns undefined where no SDK is registered. */
export function openTracing(): Tracing | undefined {
  const tracer = trace.getTracer('gatehouse', VERSION);
  const probe = tracer.startSpan('start');
  const isRegistered = isSpanContextValid(probe.spanContext());
  probe.end();
  if (!isRegistered) return undefined;
  return {
    request: (parent, work, answered) => {
      const parentContext = parent === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, parent);
      const span = tracer.startSpan('request', { kind: SpanKind.SERVER }, parentContext);
      return context.with(trace.setSpan(parentContext, span), async () => {
        try {
          await recordFailure(span, work);
        } finally {
          const { method, route = 'none', status } = answered();
          span.updateName(`${method} ${route}`);
          span.setAttributes({
            'http.request.method': method,
            'http.route': route,
            'http.response.status_code': status,
          });
          if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
          span.end();
        }
      });
    },
    span: (name, attributes, work) =>
      tracer.startActiveSpan(name, { kind: SpanKind.CLIENT, attributes }, async (span) => {
        try {
          return await recordFailure(span, work);
        } finally {
          span.end();
        }
      }),
    ids: () => {
      const found = trace.getActiveSpan()?.spanContext();
      return found === undefined || !isSpanContextValid(found)
        ? {}
        : { trace_id: found.traceId, span_id: found.spanId };
    },
  };
}

/** Records a failure on the span, without its message, which may contain personal data. */
async function recordFailure<T>(span: Span, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    const type = thrown instanceof Error ? thrown.name : typeof thrown;
    span.setStatus({ code: SpanStatusCode.ERROR });
    span.setAttribute('error.type', type);
    throw thrown;
  }
}
