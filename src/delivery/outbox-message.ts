// A message of the development outbox. It stands alone, since `gatehouse/testing` shows its type to people's tests.
import { z } from 'zod';

/** As its file holds it. */
export const messageSchema = z.object({
  to: z.string(),
  channel: z.enum(['email', 'sms']),
  subject: z.string().optional(),
  text: z.string(),
  html: z.string().optional(),
  code: z.string().optional(),
  link: z.string().optional(),
  /** ISO 8601. */
  at: z.string(),
});

/** A stored message; `id` is its file's name. */
export type OutboxMessage = z.output<typeof messageSchema> & { id: string };
