// Spans of what the server does, for whoever collects traces. Nobody is told where tracing is off: each place has it as an
// optional member.
import type { IncomingHttpHeaders } from 'node:http';

/** What is told of a span: never what a stranger sent, and no secret. */
type Attributes = Readonly<Record<string, string | number>>;

export interface Tracing {
  /**
   * Runs the work on a request as a span, below that of the proxy before it where that is believed.
   * @param parent headers to take it from; undefined where nobody is believed.
   * @param answered what there is to tell when it has ended.
   */
  request(
    parent: IncomingHttpHeaders | undefined,
    work: () => Promise<void>,
    answered: () => { method: string; route: string | undefined; status: number },
  ): Promise<void>;
  /** Runs work as a span of its own, below that of what it is done for; its failure is the span's. */
  span<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>;
  /** For lines of the log: of the span that is under way. */
  ids(): Record<string, string>;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Whether the environment asks for traces, in the words of the OpenTelemetry specification. */
export function isTracingAsked(env: Environment): boolean {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return false;
  if (env.OTEL_TRACES_EXPORTER === 'none') return false;
  return [
    env.OTEL_TRACES_EXPORTER,
    env.OTEL_EXPORTER_OTLP_ENDPOINT,
    env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
  ].some((value) => value !== undefined && value !== '');
}
