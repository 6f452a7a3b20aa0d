// Why a receiver did not take what was sent to it.

/** A failure of one try of a delivery. */
export class NotTaken extends Error {
  /** Whether a later try may succeed. */
  readonly mayPass: boolean;

  constructor(message: string, mayPass: boolean) {
    super(message);
    this.name = 'NotTaken';
    this.mayPass = mayPass;
  }
}
