import * as tabler from "./tabler-icons.ts";

const OUTLINE = {
  fill: "none",
  stroke: "currentColor",
  strokeWidth: 1.75,
  strokeLinecap: "round",
  strokeLinejoin: "round",
} as const;
const FILLED = { fill: "currentColor", stroke: "none" } as const;

/** The icons of the design, in its stroke. 16 px beside text, `size={20}` alone. */
const drawn = (paths: readonly string[], style: typeof OUTLINE | typeof FILLED = OUTLINE) =>
  function DrawnIcon({ size = 16, className }: { size?: number; className?: string }) {
    return (
      <svg
        xmlns="http://www.w3.org/2000/svg"
        width={size}
        height={size}
        viewBox="0 0 24 24"
        {...style}
        aria-hidden="true"
        className={className}
      >
        {paths.map((path) => (
          <path key={path} d={path} />
        ))}
      </svg>
    );
  };

export const AlertIcon = drawn(tabler.alertCircle);
export const ApprovalIcon = drawn(tabler.userCheck);
export const AppsIcon = drawn(tabler.apps);
export const ArchiveIcon = drawn(tabler.archive);
export const ArrowUpIcon = drawn(tabler.arrowUp);
export const BackIcon = drawn(tabler.arrowLeft);
export const BankIcon = drawn(tabler.buildingBank);
export const BellIcon = drawn(tabler.bell);
export const BookIcon = drawn(tabler.book2);
export const CardIcon = drawn(tabler.creditCard);
export const ChartIcon = drawn(tabler.chartBar);
export const CheckIcon = drawn(tabler.check);
export const ChevronIcon = drawn(tabler.chevronRight);
export const ClockIcon = drawn(tabler.clock);
export const CloseIcon = drawn(tabler.x);
export const CloudIcon = drawn(tabler.cloud);
export const CodeIcon = drawn(tabler.code);
export const ColumnsIcon = drawn(tabler.columns2);
export const CopyIcon = drawn(tabler.copy);
export const DelayIcon = drawn(tabler.hourglass);
export const DiscountIcon = drawn(tabler.discount);
export const DisputeIcon = drawn(tabler.gavel);
export const DoneIcon = drawn(tabler.circleCheck);
export const DownloadIcon = drawn(tabler.download);
export const EmbeddingIcon = drawn(tabler.equal);
export const EventsIcon = drawn(tabler.activity);
export const EyeIcon = drawn(tabler.eye);
export const FileIcon = drawn(tabler.file);
export const FlagIcon = drawn(tabler.flag);
export const FlaskIcon = drawn(tabler.flask);
export const GaugeIcon = drawn(tabler.gauge);
export const HandIcon = drawn(tabler.handStop);
export const HeartFilledIcon = drawn(tabler.heartFilled, FILLED);
export const HeartIcon = drawn(tabler.heart);
export const HistoryIcon = drawn(tabler.history);
export const HomeIcon = drawn(tabler.home);
export const InfoIcon = drawn(tabler.infoCircle);
export const KeyIcon = drawn(tabler.key);
export const LinkIcon = drawn(tabler.link);
export const LogIcon = drawn(tabler.listDetails);
export const MailIcon = drawn(tabler.mail);
export const MapIcon = drawn(tabler.stack2);
export const MoreIcon = drawn(tabler.dots);
export const OpenIcon = drawn(tabler.externalLink);
export const PackageIcon = drawn(tabler.packageIcon);
export const PauseIcon = drawn(tabler.playerPause);
export const PlayIcon = drawn(tabler.playerPlay);
export const PlusIcon = drawn(tabler.plus);
export const PromptIcon = drawn(tabler.message2);
export const PulseIcon = drawn(tabler.heartbeat);
export const QueueIcon = drawn(tabler.stackPush);
export const ReceiptIcon = drawn(tabler.receipt);
export const RedoIcon = drawn(tabler.arrowForwardUp);
export const RefreshIcon = drawn(tabler.refresh);
export const ResumeIcon = drawn(tabler.playerTrackNext);
export const ReviewIcon = drawn(tabler.star);
export const RotateIcon = drawn(tabler.refresh);
export const RunningIcon = drawn(tabler.loader2);
export const SavedIcon = drawn(tabler.cloudCheck);
export const SearchIcon = drawn(tabler.search);
export const SendIcon = drawn(tabler.send);
export const SettingsIcon = drawn(tabler.settings);
export const ShareIcon = drawn(tabler.share2);
export const ShieldIcon = drawn(tabler.shieldLock);
export const SignatureIcon = drawn(tabler.signature);
export const SkipIcon = drawn(tabler.playerSkipForward);
export const StarIcon = drawn(tabler.starFilled, FILLED);
export const StopIcon = drawn(tabler.playerStop);
export const TableIcon = drawn(tabler.table);
export const TransformIcon = drawn(tabler.transform);
export const TrashIcon = drawn(tabler.trash);
export const UndoIcon = drawn(tabler.arrowBackUp);
export const UploadIcon = drawn(tabler.upload);
export const UserIcon = drawn(tabler.user);
export const UsersIcon = drawn(tabler.users);
export const WaitingIcon = drawn(tabler.circleDashed);
export const WalletIcon = drawn(tabler.wallet);
export const WarningIcon = drawn(tabler.alertTriangle);
export const WebhookIcon = drawn(tabler.webhook);
export const WorkflowIcon = drawn(tabler.sitemap);
