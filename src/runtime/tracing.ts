// Tracing of what the server does. Where it is off, the optional member of each dependency is undefined.
import type { IncomingHttpHeaders } from 'node:http';

// docs/understand/decisions/operating.md#spans-contain-what-the-server-declares-never-what-a-client-sent
/** Attributes of a span: never a value that a client sent, and no secret. */
type Attributes = Readonly<Record<string, string | number>>;

export interface Tracing {
  /**
   * Handles a request as a span, whose parent is the span of the reverse proxy if that is trusted.
   * @param parent headers that name the parent; undefined when they are not trusted.
   * @param describeResponse returns what is recorded at the end.
   */
  request(
    parent: IncomingHttpHeaders | undefined,
    work: () => Promise<void>,
    describeResponse: () => { method: string; route: string | undefined; status: number },
  ): Promise<void>;
  /** Runs a function as a child span of the current one; an error is recorded on the span. */
  span<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>;
  /** Returns the ids of the current span, for lines of the log. */
  ids(): Record<string, string>;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Whether the environment switches tracing on, by the variables of the OpenTelemetry specification. */
export function isTracingEnabled(env: Environment): boolean {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return false;
  if (env.OTEL_TRACES_EXPORTER === 'none') return false;
  return [
    env.OTEL_TRACES_EXPORTER,
    env.OTEL_EXPORTER_OTLP_ENDPOINT,
    env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
  ].some((value) => value !== undefined && value !== '');
}
