import {
  IconActivity,
  IconAlertCircle,
  IconAlertTriangle,
  IconApps,
  IconArchive,
  IconArrowBackUp,
  IconArrowForwardUp,
  IconArrowLeft,
  IconArrowUp,
  IconBell,
  IconBook2,
  IconBuildingBank,
  IconChartBar,
  IconCheck,
  IconChevronRight,
  IconCircleCheck,
  IconCircleDashed,
  IconClock,
  IconCloud,
  IconCloudCheck,
  IconCode,
  IconColumns2,
  IconCopy,
  IconCreditCard,
  IconDiscount,
  IconDots,
  IconDownload,
  IconExternalLink,
  IconEye,
  IconFile,
  IconFlag,
  IconFlask,
  IconGauge,
  IconGavel,
  IconHandStop,
  IconHeart,
  IconHeartbeat,
  IconHeartFilled,
  IconHistory,
  IconHome,
  IconHourglass,
  IconInfoCircle,
  IconKey,
  IconLink,
  IconListDetails,
  IconLoader2,
  IconMail,
  IconMessage2,
  IconPackage,
  IconPlayerPause,
  IconPlayerPlay,
  IconPlayerSkipForward,
  IconPlayerStop,
  IconPlayerTrackNext,
  IconPlus,
  IconReceipt,
  IconRefresh,
  IconSearch,
  IconSend,
  IconSettings,
  IconShare2,
  IconShieldLock,
  IconSignature,
  IconSitemap,
  IconStack2,
  IconStackPush,
  IconStar,
  IconStarFilled,
  IconTable,
  IconTransform,
  IconTrash,
  IconUpload,
  IconUser,
  IconUserCheck,
  IconUsers,
  IconWallet,
  IconWebhook,
  IconX,
} from "@tabler/icons-react";

/** The icons of the design, in its stroke. 16 px beside text, `size={20}` alone. */
const drawn = (Icon: typeof IconSearch) =>
  function DrawnIcon({ size = 16, className = "" }: { size?: number; className?: string }) {
    return <Icon size={size} stroke={1.75} aria-hidden="true" className={className} />;
  };

export const AlertIcon = drawn(IconAlertCircle);
export const ApprovalIcon = drawn(IconUserCheck);
export const AppsIcon = drawn(IconApps);
export const ArchiveIcon = drawn(IconArchive);
export const ArrowUpIcon = drawn(IconArrowUp);
export const BackIcon = drawn(IconArrowLeft);
export const BankIcon = drawn(IconBuildingBank);
export const BellIcon = drawn(IconBell);
export const BookIcon = drawn(IconBook2);
export const CardIcon = drawn(IconCreditCard);
export const ChartIcon = drawn(IconChartBar);
export const CheckIcon = drawn(IconCheck);
export const ChevronIcon = drawn(IconChevronRight);
export const ClockIcon = drawn(IconClock);
export const CloseIcon = drawn(IconX);
export const CloudIcon = drawn(IconCloud);
export const CodeIcon = drawn(IconCode);
export const ColumnsIcon = drawn(IconColumns2);
export const CopyIcon = drawn(IconCopy);
export const DelayIcon = drawn(IconHourglass);
export const DiscountIcon = drawn(IconDiscount);
export const DisputeIcon = drawn(IconGavel);
export const DoneIcon = drawn(IconCircleCheck);
export const DownloadIcon = drawn(IconDownload);
export const EventsIcon = drawn(IconActivity);
export const EyeIcon = drawn(IconEye);
export const FileIcon = drawn(IconFile);
export const FlagIcon = drawn(IconFlag);
export const FlaskIcon = drawn(IconFlask);
export const GaugeIcon = drawn(IconGauge);
export const HandIcon = drawn(IconHandStop);
export const HeartFilledIcon = drawn(IconHeartFilled);
export const HeartIcon = drawn(IconHeart);
export const HistoryIcon = drawn(IconHistory);
export const HomeIcon = drawn(IconHome);
export const InfoIcon = drawn(IconInfoCircle);
export const KeyIcon = drawn(IconKey);
export const LinkIcon = drawn(IconLink);
export const LogIcon = drawn(IconListDetails);
export const MailIcon = drawn(IconMail);
export const MapIcon = drawn(IconStack2);
export const MoreIcon = drawn(IconDots);
export const OpenIcon = drawn(IconExternalLink);
export const PackageIcon = drawn(IconPackage);
export const PauseIcon = drawn(IconPlayerPause);
export const PlayIcon = drawn(IconPlayerPlay);
export const PlusIcon = drawn(IconPlus);
export const PromptIcon = drawn(IconMessage2);
export const PulseIcon = drawn(IconHeartbeat);
export const QueueIcon = drawn(IconStackPush);
export const ReceiptIcon = drawn(IconReceipt);
export const RedoIcon = drawn(IconArrowForwardUp);
export const RefreshIcon = drawn(IconRefresh);
export const ResumeIcon = drawn(IconPlayerTrackNext);
export const ReviewIcon = drawn(IconStar);
export const RotateIcon = drawn(IconRefresh);
export const RunningIcon = drawn(IconLoader2);
export const SavedIcon = drawn(IconCloudCheck);
export const SearchIcon = drawn(IconSearch);
export const SendIcon = drawn(IconSend);
export const SettingsIcon = drawn(IconSettings);
export const ShareIcon = drawn(IconShare2);
export const ShieldIcon = drawn(IconShieldLock);
export const SignatureIcon = drawn(IconSignature);
export const SkipIcon = drawn(IconPlayerSkipForward);
export const StarIcon = drawn(IconStarFilled);
export const StopIcon = drawn(IconPlayerStop);
export const TableIcon = drawn(IconTable);
export const TransformIcon = drawn(IconTransform);
export const TrashIcon = drawn(IconTrash);
export const UndoIcon = drawn(IconArrowBackUp);
export const UploadIcon = drawn(IconUpload);
export const UserIcon = drawn(IconUser);
export const UsersIcon = drawn(IconUsers);
export const WaitingIcon = drawn(IconCircleDashed);
export const WalletIcon = drawn(IconWallet);
export const WarningIcon = drawn(IconAlertTriangle);
export const WebhookIcon = drawn(IconWebhook);
export const WorkflowIcon = drawn(IconSitemap);
