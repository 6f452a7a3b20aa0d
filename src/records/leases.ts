// Who is at work that one process at a time does.
import type { Stored } from './record.ts';

/** `id` is the name of the work; gone when it expires. */
export interface LeaseRecord extends Stored {
  /** Whoever took it. */
  holder: string;
}

/** Tries that are being judged, of one count of failed attempts; `id` is the count's. */
export interface TriesRecord extends Stored {
  /** By try, epoch milliseconds until when it counts. */
  judged: Record<string, number>;
}
