// Who is at work that one process at a time does.
import type { Stored } from './record.ts';

/** `id` is the name of the work. It expires long after its end, which no process's own clock may hide. */
export interface LeaseRecord extends Stored {
  /** Whoever took it. */
  holder: string;
  /** Until when, epoch milliseconds of the clock that all processes share; absent in those of earlier releases: when it expires. */
  until?: number;
}

/** Tries that are being judged, of one count of failed attempts; `id` is the count's. */
export interface TriesRecord extends Stored {
  /** By try, until when it counts, epoch milliseconds of the clock that all processes share. */
  judged: Record<string, number>;
}
